"""Batches: every example once, static shapes, an order that can be repeated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.batches import HeldBatches
from data.buckets import Buckets
from data.packed import FILLER_TARGET, PackedRows

BUCKETS = (4, 8, 12)


def split(lengths):
    lengths = np.array(lengths, np.int32)
    tokens = np.repeat(np.arange(1, len(lengths) + 1), lengths).astype(np.uint16)
    targets = np.arange(len(lengths), dtype=np.int32)
    return PackedRows(tokens, lengths[:, None], targets)


def batcher(count=40, batch_size=4, seed=0, buckets=BUCKETS):
    lengths = np.random.default_rng(seed).integers(0, buckets[-1] + 1, count)
    return HeldBatches(split(lengths), Buckets(buckets, batch_size))


def take(dataset, count):
    return [
        {name: value.numpy() for name, value in batch.items()}
        for batch in dataset.take(count)
    ]


def seen(batches):
    targets = np.concatenate([batch["targets"] for batch in batches])
    return sorted(targets[targets != FILLER_TARGET])


@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=30),
    batch_size=st.integers(1, 7),
    data=st.data(),
)
def test_an_epoch_is_the_subset_once(lengths, batch_size, data):
    chosen = data.draw(st.sets(st.integers(0, len(lengths) - 1), min_size=1))
    subset = np.array(sorted(chosen))
    batches = HeldBatches(split(lengths), Buckets(BUCKETS, batch_size), subset)
    for random in (None, np.random.default_rng(0)):
        plan = batches.plan(random)
        assert len(plan) == batches.num_batches
        assert sorted(np.concatenate([rows for _, rows in plan])) == sorted(chosen)
        for bucket, rows in plan:
            assert 1 <= len(rows) <= batch_size
            shorter = BUCKETS[bucket - 1] if bucket else -1
            assert all(shorter < lengths[i] <= BUCKETS[bucket] for i in rows)


def test_batches_hold_the_examples_padded():
    batches = batcher()
    for batch in take(batches.for_evaluation(), batches.num_batches):
        assert batch["inputs"].dtype == np.int32
        for row, target in zip(batch["inputs"], batch["targets"], strict=True):
            length = 0 if target < 0 else batches.rows.lengths[target, 0]
            assert (row[:length] == target + 1).all()
            assert (row[length:] == 0).all()


def test_evaluation_sees_every_example_once():
    batches = batcher(count=37)
    assert seen(take(batches.for_evaluation(), -1)) == list(range(37))


def test_order_repeats_by_seed_and_epoch():
    batches = batcher()
    count = batches.num_batches
    one, again = (
        take(batches.for_training(7), 2 * count),
        take(batches.for_training(7), 2 * count),
    )
    for first, second in zip(one, again, strict=True):
        np.testing.assert_array_equal(first["inputs"], second["inputs"])
    epochs = one[:count], one[count:]
    assert seen(epochs[0]) == seen(epochs[1]) == list(range(40))
    targets = [np.concatenate([b["targets"] for b in epoch]) for epoch in epochs]
    assert (targets[0] != targets[1]).any()
    other = take(batches.for_training(8), count)
    assert any(
        (a["targets"] != b["targets"]).any()
        for a, b in zip(epochs[0], other, strict=True)
    )


@pytest.mark.parametrize("first", [0, 3, 17, 25])
def test_a_run_goes_on_where_it_stopped(first):
    batches = batcher()
    whole = take(batches.for_training(1), first + 4)[first:]
    rest = take(batches.for_training(1, first_batch=first), 4)
    for expected, found in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(expected["inputs"], found["inputs"])


def test_shapes_are_static():
    inputs = batcher().for_training(0).element_spec["inputs"]
    assert inputs.shape.as_list() == [4, None]
    inputs = batcher(buckets=(12,)).for_training(0).element_spec["inputs"]
    assert inputs.shape.as_list() == [4, 12]
    found = {batch["inputs"].shape for batch in take(batcher().for_evaluation(), -1)}
    assert found <= set(batcher().shapes) == {(4, length) for length in BUCKETS}
