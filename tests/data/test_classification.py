"""Whole datasets: splits, the token cache, counts of what was cut or skipped."""

import logging
import os

import numpy as np
import pytest

from configs.ag_news import get_config
from data import stream
from data.classification import ClassificationData
from data.rows import DataError
from data.tokenizers import make_tokenizer

PIECES = "[PAD]\n[UNK]\nword\n"


@pytest.fixture
def config(tmp_path):
    folder = tmp_path / "ag_news_csv"
    folder.mkdir()
    for split, count in (("train", 30), ("test", 8)):
        rows = [f'"{i % 4 + 1}","word","{"word " * i}"\n' for i in range(count)]
        (folder / f"{split}.csv").write_text("".join(rows))
    (tmp_path / "vocab.txt").write_text(PIECES)
    settings = get_config().data
    settings.update(
        source="files",
        dir=str(folder),
        vocab_file=str(tmp_path / "vocab.txt"),
        cache_dir=str(tmp_path / "cache"),
        validation_examples=10,
        max_length=16,
        bucket_lengths=(8, 16),
    )
    return settings


def open_data(config, seed=0):
    return ClassificationData(config, seed, make_tokenizer(config))


def test_validation_is_cut_from_train_by_the_seed(config, tmp_path):
    dataset = open_data(config)
    train, validation = dataset.batcher("train", 4), dataset.batcher("validation", 4)
    assert train.num_examples == 20 and validation.num_examples == 10
    assert sorted([*train.subset, *validation.subset]) == list(range(30))
    other = open_data(config, seed=1).batcher("validation", 4)
    assert (other.subset != validation.subset).any()
    assert dataset.batcher("test", 4).num_examples == 8


def test_too_large_a_validation_split(config, tmp_path):
    config.validation_examples = 30
    with pytest.raises(DataError, match="expected less than the 30 .*, found 30") as e:
        open_data(config).batcher("train", 4)
    assert str(e.value).endswith("--config.data.validation_examples=3")
    config.validation_examples = 3
    assert open_data(config).batcher("train", 4).num_examples == 27


def test_a_class_without_examples_is_named(config, tmp_path, caplog):
    (tmp_path / "ag_news_csv/test.csv").write_text('"1","a","b"\n"4","a","b"\n')
    open_data(config).batcher("test", 4)
    message = "ag_news test: found no examples of the classes Sports, Business"
    assert message in caplog.text


def test_second_run_reads_the_cache(config, tmp_path, monkeypatch, caplog):
    first = open_data(config).batcher("train", 4)

    def unexpected(*arguments):
        raise AssertionError("tokenized again")

    monkeypatch.setattr(stream, "TokenStream", unexpected)
    with caplog.at_level(logging.INFO, "transevolve"):
        second = open_data(config).batcher("train", 4)
    np.testing.assert_array_equal(first.rows.tokens, second.rows.tokens)
    # Rows of 17 words and more are cut, and said to be, in every run.
    message = "ag_news train: 30 examples, 14 cut at 16 tokens, 0 bad rows skipped"
    assert message in caplog.text
    assert second.rows.lengths.max() == 16


def test_cache_notices_labels_swapped_in_place(config, tmp_path):
    path = tmp_path / "ag_news_csv/test.csv"
    before, status = open_data(config).batcher("test", 4).rows, path.stat()
    path.write_text(path.read_text().replace('"1",', '"2",'))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = open_data(config).batcher("test", 4).rows
    assert before.targets.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert after.targets.tolist() == [1, 1, 2, 3, 1, 1, 2, 3]


@pytest.mark.parametrize("change", ["file", "max_length", "vocabulary"])
def test_cache_notices_changes(config, tmp_path, change):
    before = open_data(config).batcher("test", 4).rows
    if change == "file":
        path = tmp_path / "ag_news_csv/test.csv"
        path.write_text(path.read_text() + '"1","word","more"\n')
    elif change == "max_length":
        config.update(max_length=4, bucket_lengths=(4,))
    else:
        (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\nwo\n##rd\n")
    after = open_data(config).batcher("test", 4)
    assert len(after.rows.tokens) != len(before.tokens)


def test_bad_rows_end_the_run_or_are_skipped(config, tmp_path, caplog):
    path = tmp_path / "ag_news_csv/train.csv"
    path.write_text(path.read_text() + '"7","a","b"\n')
    with pytest.raises(DataError, match=r"train.csv:31: expected a class"):
        open_data(config).batcher("train", 4)
    config.on_error = "skip"
    with caplog.at_level(logging.INFO, "transevolve"):
        train = open_data(config).batcher("train", 4)
    assert train.num_examples == 20
    assert "1 bad rows skipped" in caplog.text


def test_nothing_but_bad_rows(config, tmp_path):
    (tmp_path / "ag_news_csv/test.csv").write_text('"7","a","b"\n')
    config.on_error = "skip"
    with pytest.raises(DataError, match="ag_news test: expected examples, found none"):
        open_data(config).batcher("test", 4)
