"""Batches of pairs: each pair once an epoch, static shapes, runs that go on."""

import itertools
import logging
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.batches import HeldBatches
from data.buckets import Buckets
from data.packed import PackedRows
from data.rows import DataError
from data.stream import StreamedBatches
from data.tokenizers.subwords import END

LENGTHS = (4, 8, 12)
FIRST = 10  # token of the first pair, the next has the next one


def packed(lengths, first=FIRST):
    lengths = np.array(lengths, np.int32).reshape(-1, 2)
    names = np.arange(first, first + len(lengths))
    tokens = [
        [name] * size + [END]
        for name, sizes in zip(names, lengths, strict=True)
        for size in sizes
    ]
    return PackedRows(np.concatenate(tokens).astype(np.uint16), lengths + 1)


class Stream:
    """What `TokenStream` is to a batcher; pair i is made of the token FIRST + i."""

    skipped = 2

    def __init__(self, lengths, chunk_size=3, fails_at=None):
        self.lengths, self.chunk_size, self.fails_at = lengths, chunk_size, fails_at

    def chunks(self):
        for start in range(0, len(self.lengths), self.chunk_size):
            if self.fails_at is not None and start >= self.fails_at:
                raise DataError("train.en:7: expected this, found that")
            part = self.lengths[start : start + self.chunk_size]
            yield packed(part, FIRST + start)


def some_lengths(count=60, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(1, LENGTHS[-1], (count, 2)).tolist()


def batcher(lengths=None, batch_size=4, unit="sentences", window=16, **stream):
    lengths = some_lengths() if lengths is None else lengths
    buckets = Buckets(LENGTHS, batch_size, unit)
    return StreamedBatches(
        "en-de train", lambda: Stream(lengths, **stream), buckets, window
    )


def take(dataset, count):
    return sides(itertools.islice(dataset.as_numpy_iterator(), count))


def deal(batches, seed, count, first_batch=0):
    """What the dataset of `train` holds, without TensorFlow's share of the time."""
    return sides(itertools.islice(batches._batches(seed, first_batch), count))


def sides(batches):
    return [(batch["inputs"], batch["targets"]) for batch in batches]


def pairs_in(batches):
    """(index, source length, target length) of every pair, sorted."""
    found = []
    for inputs, targets in batches:
        for source, target in zip(inputs, targets, strict=True):
            if not source.any():
                assert not target.any()
                continue
            sizes = []
            for side in (source, target):
                size = int(np.argmax(side == END))
                assert len(set(side[:size])) <= 1 and not side[size + 1 :].any()
                sizes.append(size)
            names = {*source[: sizes[0]], *target[: sizes[1]]}
            found.append((int(max(names)) - FIRST, *sizes))
            assert len(names) == 1
    return sorted(found)


def expected_pairs(lengths):
    return [(index, *pair) for index, pair in enumerate(lengths) if max(pair) < 12]


@settings(max_examples=25)
@given(
    lengths=st.lists(
        st.tuples(st.integers(1, 13), st.integers(1, 13)), min_size=1, max_size=40
    ).filter(lambda lengths: any(max(pair) < 12 for pair in lengths)),
    batch_size=st.integers(1, 7),
    window=st.integers(1, 50),
    chunk_size=st.integers(1, 9),
    seed=st.integers(0, 2**31 - 1),
)
def test_epochs_are_the_pairs_once(lengths, batch_size, window, chunk_size, seed):
    batches = batcher(lengths, batch_size, window=window, chunk_size=chunk_size)
    first = deal(batches, seed, 1)
    stream = deal(batches, seed, 200)
    count, expected = batches.num_batches, expected_pairs(lengths)
    assert len(stream) == 200 and count <= len(expected)
    for start in range(0, 200 - count, count):
        assert pairs_in(stream[start : start + count]) == expected
    for inputs, targets in stream:
        assert inputs.shape == targets.shape == (batch_size, inputs.shape[1])
        assert inputs.dtype == targets.dtype == np.int32
        longest = max(
            np.count_nonzero(side, axis=1).max() for side in (inputs, targets)
        )
        assert inputs.shape[1] == min(n for n in LENGTHS if n >= longest)
    np.testing.assert_array_equal(first[0][0], stream[0][0])
    assert batches.num_examples == len(expected)
    too_long = len(lengths) - len(expected)
    assert batches.counts == {
        "read": len(lengths),
        "too_long": too_long,
        "skipped": 2,
    }


def test_datasets_hold_the_batches():
    found, expected = take(batcher().for_training(7), 80), deal(batcher(), 7, 80)
    rest = take(batcher().for_training(7, first_batch=70), 10)
    for one, two in zip(found + rest, expected + expected[70:], strict=True):
        np.testing.assert_array_equal(one, two)


@settings(max_examples=25)
@given(first=st.integers(0, 90), known=st.booleans(), unit=st.sampled_from("st"))
def test_a_run_goes_on_where_it_stopped(first, known, unit):
    unit, size = {"s": ("sentences", 4), "t": ("tokens", 50)}[unit]
    whole = deal(batcher(unit=unit, batch_size=size), 1, first + 4)[first:]
    again = batcher(unit=unit, batch_size=size)
    if known:
        reader = batcher(unit=unit, batch_size=size)
        deal(reader, 5, 80)
        again.num_batches = reader.num_batches
    rest = deal(again, 1, 4, first_batch=first)
    for expected, found in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(expected, found)


def test_order_depends_on_seed_and_epoch():
    batches = batcher()
    one = take(batches.for_training(7), 80)
    count = batches.num_batches
    for other in (take(batches.for_training(8), count), one[count : 2 * count]):
        assert pairs_in(other) == pairs_in(one[:count])
        assert any(
            a[0].shape != b[0].shape or (a[0] != b[0]).any()
            for a, b in zip(one, other, strict=False)
        )


def test_windows_bound_the_shuffle():
    lengths = [(1, 1)] * 64
    batches = batcher(lengths, batch_size=4, window=16, chunk_size=4)
    order = [
        index
        for batch in take(batches.for_training(0), 16)
        for index in pairs_in([batch])
    ]
    for start in range(0, 64, 16):
        window = [index for index, _, _ in order[start : start + 16]]
        assert sorted(window) == list(range(start, start + 16))


def test_the_next_window_is_read_bit_by_bit():
    read = []

    class Counting(Stream):
        def chunks(self):
            for chunk in super().chunks():
                read.append(len(chunk))
                yield chunk

    buckets = Buckets(LENGTHS, 1)
    stream = Counting([(1, 1)] * 300, chunk_size=1)
    batches = StreamedBatches("train", lambda: stream, buckets, 100)
    for number, _ in enumerate(batches._batches(0, 0), start=1):
        assert sum(read) == 100 + number
        if number == 150:
            break


def test_rows_by_tokens():
    batches = batcher(unit="tokens", batch_size=50)
    assert batches.shapes == [(8, 4), (6, 8), (4, 12)]
    found = {inputs.shape for inputs, _ in take(batches.for_training(0), 80)}
    assert batches.num_batches < 80
    assert found <= set(batches.shapes) and len(found) > 1


def test_shapes_are_static():
    def shape(lengths, unit):
        batches = StreamedBatches("train", None, Buckets(lengths, 48, unit), 10)
        spec = batches.for_training(0).element_spec
        assert spec["inputs"] == spec["targets"]
        return spec["inputs"].shape.as_list()

    assert shape(LENGTHS, "sentences") == [48, None]
    assert shape(LENGTHS, "tokens") == [None, None]
    assert shape((12,), "sentences") == [48, 12]
    assert shape((12,), "tokens") == [4, 12]


def test_evaluation_is_every_pair_once():
    lengths = some_lengths(37)
    batches = HeldBatches(packed(lengths), Buckets(LENGTHS, 4))
    found = take(batches.for_evaluation(), 1000)
    assert {inputs.shape for inputs, _ in found} <= set(batches.shapes)
    assert len(found) == batches.num_batches
    assert batches.num_examples == 37
    assert pairs_in(found) == expected_pairs(lengths)


def test_counts_of_less_than_an_epoch_are_logged(caplog):
    batches = batcher([(1, 2), (30, 12)] * 100, window=16, chunk_size=4)
    with caplog.at_level(logging.INFO, "transevolve"), batches.own_errors():
        take(batches.for_training(0), 2)
    (message,) = caplog.messages
    found = re.fullmatch(
        r"en-de train: so far (\d+) pairs, (\d+) left out as longer than 11 subwords, "
        "2 bad rows skipped",
        message,
    )
    read, left_out = map(int, found.groups())
    assert 16 <= read < 200 and left_out == read // 2


def test_counts_are_logged_once(caplog):
    with caplog.at_level(logging.INFO, "transevolve"):
        take(batcher([(1, 2), (3, 12), (11, 11)]).for_training(0), 20)
    assert caplog.messages == [
        "en-de train: 3 pairs, 1 left out as longer than 11 subwords, "
        "2 bad rows skipped"
    ]


@pytest.mark.parametrize(
    "stream, message",
    [
        ({"lengths": []}, "train: expected pairs to train on, found 0 pairs"),
        ({"lengths": [(12, 1), (1, 30)]}, "found 2 pairs, 2 left out as longer than"),
        ({"fails_at": 30}, "^train.en:7: expected this, found that$"),
    ],
)
def test_errors_come_out_as_they_are(stream, message):
    batches = batcher(**stream)
    with pytest.raises(DataError, match=message), batches.own_errors():
        take(batches.for_training(0), 1000)


def test_other_data_than_before():
    batches = batcher()
    batches.num_batches = 5
    message = "expected 5 batches in an epoch, as before, found"
    with pytest.raises(DataError, match=message), batches.own_errors():
        take(batches.for_training(0, first_batch=12), 100)
