"""Hidden tokens: how many, which, and that nothing else changes a score."""

import numpy as np
import pytest

from data.batches import HeldBatches
from data.buckets import Buckets
from data.masked import MaskedBatches
from tests.data.test_classification_batching import BUCKETS, batcher, split, take


def masked(**arguments):
    return MaskedBatches(batcher(**arguments))


def test_a_target_is_the_token_of_its_place():
    batches = masked(count=400)
    hidden = real = 0
    for batch in take(batches.for_training(0), batches.num_batches):
        tokens, targets = batch["inputs"], batch["targets"]
        np.testing.assert_array_equal(targets, np.where(targets, tokens, 0))
        hidden += np.count_nonzero(targets)
        real += np.count_nonzero(tokens)
    # Some five standard errors.
    assert real > 2000 and hidden / real == pytest.approx(0.5, abs=0.05)


def test_training_hides_other_places_in_each_epoch_and_goes_on_with_them():
    batches = masked(count=4, buckets=(12,))
    first, second, third = take(batches.for_training(3), 3)

    def places(batch):
        rows = np.argsort(batch["inputs"].max(axis=1))  # a row's token is its number
        return batch["targets"][rows] != 0

    assert (places(first) != places(second)).any()
    (after,) = take(batches.for_training(3, first_batch=2), 1)
    for name, value in third.items():
        np.testing.assert_array_equal(value, after[name])
    (other,) = take(batches.for_training(4), 1)
    assert (places(other) != places(first)).any()


@pytest.mark.parametrize("batch_size", [1, 3, 40])
def test_evaluation_hides_the_same_places_whatever_the_batches(batch_size):
    def targets(batches):
        return {
            row["inputs"].max(): np.flatnonzero(row["targets"]).tolist()
            for batch in take(batches.for_evaluation(), 100)
            for row in (
                dict(zip(batch, rows, strict=True))
                for rows in zip(*batch.values(), strict=True)
            )
        }

    expected = targets(masked())
    assert targets(masked(batch_size=batch_size)) == expected
    longest = max(expected.values(), key=len)
    assert longest
    for places in expected.values():
        assert places == longest[: len(places)]


def test_a_batch_has_a_target_however_short():
    """Without one it would have no loss."""
    batches = MaskedBatches(HeldBatches(split([1] * 40), Buckets(BUCKETS, 1)))
    for batch in take(batches.for_training(0), 40):
        assert np.count_nonzero(batch["targets"]) == 1
