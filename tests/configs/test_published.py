"""The paper's figures stand beside its own test sets only."""

import pytest

from configs import multi30k, wmt14_en_de, wmt14_en_fr
from configs.published import published_bleu
from data.datasets import parallel_text

FULL = "transevolve-fullff-2"


def beside(data, split, variant=FULL):
    languages = (data.source_language, data.target_language)
    return published_bleu(languages, parallel_text.test_set(data, split), variant)


@pytest.mark.parametrize(
    "task, split, expected",
    [
        (wmt14_en_de, "validation", 26.2),
        (wmt14_en_de, "test", 27.2),
        (wmt14_en_fr, "validation", None),
        (wmt14_en_fr, "test", 39.5),
        (multi30k, "test", None),
    ],
)
def test_bleu_of_the_papers_test_sets(task, split, expected):
    data = task.get_config().data
    assert beside(data, split) == expected
    assert beside(data, split, "other") is None
    assert beside(data, split, "transformer") is None  # of another kind


@pytest.mark.parametrize(
    "change",
    [
        {"source": "files", "test_name": "newstest2012"},
        {"target_language": "fr", "source_language": "de"},
        {"tfds_name": "wmt19_translate/de-en"},
    ],
)
def test_no_bleu_beside_other_test_sets(change):
    data = wmt14_en_de.get_config().data
    data.update(change)
    assert beside(data, "test") is None


def test_names_of_files_are_not_those_of_tfds():
    data = wmt14_en_de.get_config().data
    data.test_name = "mine"
    assert parallel_text.test_set(data, "test") == "newstest2014"
    data.source = "files"
    assert parallel_text.test_set(data, "test") == "mine"
    data.update(source="tfds", tfds_name="opus/de-en")
    assert parallel_text.test_set(data, "test") == "opus/de-en test"
