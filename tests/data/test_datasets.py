"""The registries: what every dataset and tokenizer has, and how others are added."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from ml_collections import ConfigDict

from common.errors import UserError
from common.fields import Field
from data import DATASETS, FIELDS
from data.buckets import fit_buckets
from data.classification import ClassificationData
from data.datasets import listops, parallel_text
from data.pairs import ParallelData
from data.rows import Line, Pair
from data.tokenizers import TOKENIZERS, make_tokenizer
from tasks import TASKS
from tests.conftest import ROOT

FUNCTIONS = {
    "classification": [],
    "parallel_text": ["test_set"],
    "subwords": ["require_files"],
}


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_follow_the_recipe(name):
    module = DATASETS[name]
    assert module.KIND in {task.reads for task in TASKS.values()}
    assert module.SPLITS in (("train", "test"), ("train", "validation", "test"))
    assert set(module.TOKENIZERS) <= set(TOKENIZERS)
    assert all(isinstance(field, Field) for field in module.FIELDS.values())
    assert not module.FIELDS["source"].accepts("other")
    names = ["read", "identify", *FUNCTIONS.get(module.KIND, [])]
    for tokenizer in module.TOKENIZERS:
        names += FUNCTIONS.get(tokenizer, [])
    assert all(callable(getattr(module, name)) for name in names)
    assert module.KIND != "classification" or len(module.CLASS_NAMES) > 1
    assert "symbols" not in module.TOKENIZERS or len(module.SYMBOLS) > 1


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers_follow_the_recipe(name):
    kind = TOKENIZERS[name]
    assert kind.name == name
    assert all(isinstance(field, Field) for field in kind.FIELDS.values())
    assert any(name in module.TOKENIZERS for module in DATASETS.values())


@pytest.mark.parametrize(
    "fields", [FIELDS, ClassificationData.FIELDS, ParallelData.FIELDS]
)
def test_shared_fields_are_declared(fields):
    assert fields and all(isinstance(field, Field) for field in fields.values())


def test_datasets_are_imported_without_tensorflow():
    code = (
        "import sys, data, data.datasets.listops_generator;"
        "sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    "module, values, message",
    [
        (
            listops,
            {"min_length": 39, "max_length": 40},
            "min_length: expected at least 2 below data.max_length=40, found 39",
        ),
        (
            parallel_text,
            {"max_length": 1},
            "max_length: expected at least 2: a subword and the end, found 1",
        ),
        (
            parallel_text,
            {"max_length": 2, "source_language": "de", "target_language": "de"},
            "target_language: expected another language than data.source_language, "
            "found de",
        ),
    ],
)
def test_fields_that_do_not_fit_together(module, values, message):
    with pytest.raises(UserError) as error:
        module.check(ConfigDict(values))
    assert str(error.value) == f"--config.data.{message}"


def test_fields_that_fit_together():
    lengths = {"min_length": 38, "max_length": 40}
    trees = {"source": "generate", "max_depth": 10, "max_arguments": 10}
    listops.check(ConfigDict({**lengths, **trees}))
    languages = {"source_language": "en", "target_language": "de"}
    parallel_text.check(ConfigDict({"max_length": 2, **languages}))


@pytest.mark.parametrize(
    "max_length, expected",
    [
        (512, (64, 128, 256, 512)),
        (128, (64, 128)),
        (100, (64, 100)),
        (10, (10,)),
        (1000, (64, 128, 256, 512, 1000)),
    ],
)
@pytest.mark.parametrize("kind", [tuple, list])
def test_buckets_fit_the_longest_length(max_length, expected, kind):
    lengths = kind((64, 128, 256, 512))
    config = ConfigDict({"max_length": 512, "bucket_lengths": lengths})
    config.max_length = max_length
    for _ in range(2):
        fit_buckets(config)
        assert config.bucket_lengths == kind(expected)


TEXTS = [b"ein Hund", b"a dog runs", b"zwei Hunde", b"two dogs"] * 30


@pytest.fixture
def registered(monkeypatch):
    """A function that names another dataset, with these rows, in the registry."""

    def register(kind, rows, **members):
        module = SimpleNamespace(
            KIND=kind,
            SPLITS=("train", "validation", "test"),
            read=lambda config, split: iter(rows),
            identify=lambda config, split: "identity",
            fingerprint=lambda config, split: "fingerprint",
            require_files=lambda config, *splits: None,
            **members,
        )
        monkeypatch.setitem(DATASETS, "other", module)

    return register


def test_another_parallel_text(registered, tmp_path):
    pairs = [Pair(*texts) for texts in zip(TEXTS[::2], TEXTS[1::2], strict=True)]
    registered("parallel_text", pairs)
    config = ConfigDict(
        {
            "dataset": "other",
            "on_error": "fail",
            "cache_dir": str(tmp_path),
            "source_language": "de",
            "target_language": "en",
            "tokenizer": "subwords",
            "vocab_file": None,
            "vocab_size": 280,
            "vocab_sentences": 100,
            "bucket_lengths": (32,),
            "shuffle_window": 10,
        }
    )
    data = ParallelData(config, make_tokenizer(config))
    assert data.texts("test")[0] == [pair.source.decode() for pair in pairs]
    assert data.evaluation("validation", 4).num_examples == len(pairs)
    assert len(list(data.training(4).for_training(0).take(3))) == 3


@pytest.mark.parametrize("tokenizer", ["wordpiece", "subwords", "bytes"])
def test_any_tokenizer_reads_plain_text(registered, tmp_path, tokenizer):
    registered("plain_text", [Line(text) for text in TEXTS])
    config = ConfigDict(
        {
            "dataset": "other",
            "on_error": "fail",
            "cache_dir": str(tmp_path),
            "tokenizer": tokenizer,
            "vocab": "train",
            "vocab_file": None,
            "vocab_size": 280,
            "vocab_sentences": 100,
        }
    )
    (ids,) = make_tokenizer(config)([b"ein Hund"]).to_list()
    assert ids and 0 not in ids
