"""Parallel text as a whole, from files to batches."""

import logging
from itertools import islice

import numpy as np
import pytest
import tensorflow as tf
from ml_collections import ConfigDict

from configs.multi30k import get_config
from data.datasets import parallel_text
from data.pairs import ParallelData
from data.rows import DataError
from data.stream import StreamedBatches
from data.tokenizers import make_tokenizer, subwords
from data.tokenizers.subwords import END
from tests import forked

WORDS = ["ein", "Hund", "dog", "man", "B\u00e4r", "the", "runs", "gr\u00fcn"]


def sentences(count, seed):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(1, 9))) for _ in range(count)]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    """A file of subwords, learned from the text that `config` names."""
    text = [line.encode() for seed in b"ed" for line in sentences(200, seed)]
    path = tmp_path_factory.mktemp("vocabulary") / "subwords.model"
    path.write_bytes(subwords.learn(text, 300))
    return path


@pytest.fixture
def config(tmp_path, vocabulary):
    for name, count in (("train", 200), ("val", 30), ("test_2016_flickr", 20)):
        for language in ("en", "de"):
            lines = sentences(count, ord(language[0]))
            path = tmp_path / f"{name}.{language}"
            path.write_text("".join(line + "\n" for line in lines))
    data = get_config().data
    data.update(
        dir=str(tmp_path),
        cache_dir=str(tmp_path / "cache"),
        vocab_file=str(vocabulary),
        vocab_size=300,
        max_length=32,
        bucket_lengths=(8, 32),
        shuffle_window=64,
    )
    return data


def open_data(config):
    return ParallelData(config, make_tokenizer(config))


def texts_of(data, batches):
    """Decoded (source, target) of every pair, sorted."""
    pairs = []
    for batch in batches:
        sides = [
            data.tokenizer.decode(tf.constant(batch[side])).numpy().tolist()
            for side in ("inputs", "targets")
        ]
        pairs += [pair for pair in zip(*sides, strict=True) if pair != (b"", b"")]
    return sorted(pairs)


def expected_texts(data, split):
    sources, targets = data.texts(split)
    return sorted(
        (a.encode(), b.encode()) for a, b in zip(sources, targets, strict=True)
    )


def test_batches_hold_the_text(config):
    data = open_data(config)
    batches = data.training(8)
    stream = list(batches.for_training(0).take(200).as_numpy_iterator())
    count = batches.num_batches
    for epoch in range(2):
        found = texts_of(data, stream[epoch * count : (epoch + 1) * count])
        assert found == expected_texts(data, "train")
    rows = stream[0]["inputs"]
    assert ((rows == END).sum(axis=1) == rows.any(axis=1)).all()


def test_a_start_reads_the_text_once(config, tmp_path, monkeypatch):
    read = []

    def counting(*arguments):
        for pair in original(*arguments):
            read.append(pair)
            yield pair

    original = parallel_text.read
    monkeypatch.setattr(parallel_text, "read", counting)
    for language in ("en", "de"):
        path = tmp_path / f"train.{language}"
        path.write_text(path.read_text() * 100)
    config.vocab_file = None
    tokenizer = make_tokenizer(config)
    assert len(read) == 20_000
    make_tokenizer(config)
    assert len(read) == 20_000
    next(iter(ParallelData(config, tokenizer).training(8).for_training(0)))
    # A few windows of 64, and what is prefetched.
    assert len(read) < 30_000


def test_evaluation_holds_pairs_of_any_length(config, tmp_path):
    path = tmp_path / "val.de"
    lines = path.read_text().split("\n")
    lines[3], lines[7] = "Hund " * 40, "xyzxyz" * 30
    path.write_text("\n".join(lines))
    data = open_data(config)
    batches = data.evaluation("validation", 4)
    found = list(batches.for_evaluation().as_numpy_iterator())
    assert len(found) == batches.num_batches and batches.num_examples == 30
    assert texts_of(data, found) == expected_texts(data, "validation")
    shapes = {batch["targets"].shape for batch in found}
    longest = max(length for _, length in shapes)
    # Rows longer than the last bucket, 32, are fewer: no more memory than 4 of those.
    assert {rows for rows, length in shapes if length <= 32} == {4}
    assert all(rows * length**2 <= 4 * 32**2 or rows == 1 for rows, length in shapes)
    assert longest > 64 and longest % 32 == 0


def test_texts_are_as_written(config):
    sources, references = open_data(config).texts("test")
    assert sources == sentences(20, ord("e"))
    assert references == sentences(20, ord("d"))


def test_bad_rows_end_the_run_or_are_skipped(config, tmp_path, caplog):
    tokenizer = make_tokenizer(config)
    for name in ("train.de", "val.de"):
        path = tmp_path / name
        path.write_text(path.read_text().replace("\n", "\n\n", 1))
        (tmp_path / name.replace("de", "en")).open("a").write("more\n")
    data = ParallelData(config, tokenizer)
    batches = data.training(8)
    expected = "^.*train.de:2: expected a sentence, found an empty line$"
    with pytest.raises(DataError, match=expected), batches.own_errors():
        list(batches.for_training(0).take(1))
    with pytest.raises(DataError, match="val.de:2: expected a sentence"):
        data.evaluation("validation", 4)
    config.on_error = "skip"
    data = ParallelData(config, tokenizer)
    with caplog.at_level(logging.INFO, "transevolve"):
        batches = data.training(8)
        list(batches.for_training(0).take(100))
        assert data.evaluation("validation", 4).num_examples == 30
        assert len(data.texts("validation")[0]) == 30
    assert batches.counts == {"read": 200, "too_long": 0, "skipped": 1}
    assert caplog.text.count("en-de validation: 30 pairs, 1 bad rows skipped") == 2


def test_errors_cross_a_strategy(config, tmp_path):
    tokenizer = make_tokenizer(config)
    with (tmp_path / "train.de").open("a") as file:
        file.write("more\n")
    batches = ParallelData(config, tokenizer).training(8)
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    iterator = iter(strategy.experimental_distribute_dataset(batches.for_training(0)))

    @tf.function
    def steps(iterator):
        for _ in tf.range(1000):
            next(iterator)

    expected = "train.de:201: expected a line in .*train.en, too, found its end"
    with pytest.raises(DataError, match=expected), batches.own_errors():
        steps(iterator)


def test_other_errors_stay(config):
    batches = StreamedBatches("train", None, None, 1)
    with pytest.raises(tf.errors.OutOfRangeError), batches.own_errors():
        raise tf.errors.OutOfRangeError(None, None, "end")


def count_batches(config):
    # Before TensorFlow starts its threads, in a process of its own.
    tf.config.threading.set_inter_op_parallelism_threads(1)
    data = open_data(ConfigDict(config))
    return len(list(data.training(8).for_training(0).take(100)))


def test_one_thread_is_enough(config):
    # Datasets within datasets wait for each other: more than threads to run them.
    assert forked.call(count_batches, config.to_dict()) == 100


def test_batches_of_real_pairs_have_each_and_are_full(multi30k):
    data = ParallelData(*multi30k)
    batches = data.training(2048, "tokens")
    stream = batches.for_training(0).as_numpy_iterator()
    # The window holds the whole epoch, so its first batch comes after all is read.
    stream = [next(stream), *islice(stream, batches.num_batches - 1)]
    assert batches.counts == {"read": 29000, "too_long": 0, "skipped": 0}
    assert texts_of(data, stream) == expected_texts(data, "train")
    tokens = np.mean([batch["targets"].size for batch in stream])
    real = np.mean([np.count_nonzero(batch["targets"]) for batch in stream])
    assert 1500 < tokens <= 2048 and real > 0.7 * tokens
