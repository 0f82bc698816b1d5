"""The paper's figures stand beside its own test sets only."""

import pytest

from configs import multi30k, wmt14_en_de, wmt14_en_fr
from reporting.published import published_bleu

FULL = "transevolve-fullff-2"


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
    assert published_bleu(data, split, FULL) == expected
    assert published_bleu(data, split, "other") is None


@pytest.mark.parametrize(
    "change",
    [
        {"test_name": "newstest2012"},
        {"target_language": "fr", "source_language": "de"},
        {"tfds_name": "wmt19_translate/de-en"},
    ],
)
def test_no_bleu_beside_other_test_sets(change):
    data = wmt14_en_de.get_config().data
    data.update(change)
    assert published_bleu(data, "test", FULL) is None
