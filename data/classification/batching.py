"""Batches of one static shape per length bucket, in an order that seeds fix."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import tensorflow as tf

from data.batches import Batches, fingerprint
from data.buckets import Buckets
from data.classification.token_cache import TokenizedSplit
from data.dataset_options import untuned

# The target of a row that only fills up a batch; it counts in no loss or metric.
FILLER_TARGET = -1


class Batcher(Batches):
    """Batches of a subset of a tokenized split.

    Examples share a batch with examples of the same length bucket. The last batch of
    each bucket is filled up with empty rows, so no example is left out.

    Args:
      split: the examples.
      subset: indices of the examples to use.
      batch_size: rows of a batch.
      bucket_lengths: increasing; a batch is as long as its bucket. The last one must
        hold the longest example.
    """

    fillers = {"inputs": 0, "targets": FILLER_TARGET}

    def __init__(
        self,
        split: TokenizedSplit,
        subset: np.ndarray,
        batch_size: int,
        bucket_lengths: tuple[int, ...],
    ):
        self.split = split
        self.subset = subset
        self.batch_size = batch_size
        self.buckets = Buckets(bucket_lengths, batch_size)
        counts = self.buckets.count(split.lengths[subset])
        self.num_batches = self.buckets.num_batches(counts)
        self.num_examples = len(subset)

    @cached_property
    def fingerprint(self):
        split = self.split
        return fingerprint(split.tokens, split.lengths, split.targets, self.subset)

    def plan(self, random: np.random.Generator | None) -> list[tuple[np.ndarray, int]]:
        """One epoch: (indices of a batch's examples, its length) for every batch.

        Args:
          random: shuffles examples and batches; None keeps the order within buckets.
            An index equal to the split's size stands for an empty row.
        """
        order = self.subset if random is None else random.permutation(self.subset)
        batches = []
        for bucket, indices in self.buckets.plan(self.split.lengths, order)[0]:
            filler = np.full(self.batch_size - len(indices), len(self.split.targets))
            length = int(self.buckets.lengths[bucket])
            batches.append((np.concatenate([indices, filler]), length))
        if random is not None:
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def train(self, seed: int, first_batch: int = 0) -> tf.data.Dataset:
        """Endless batches; epoch e is shuffled by (seed, e).

        Args:
          seed: non-negative integer.
          first_batch: where to start, counted over all epochs: a run that goes on
            sees what it would have seen.
        """

        def plans() -> Iterator:
            epoch, skip = divmod(first_batch, self.num_batches)
            while True:
                yield from self.plan(np.random.default_rng([seed, epoch]))[skip:]
                epoch, skip = epoch + 1, 0

        return self._dataset(plans)

    def evaluate(self) -> tf.data.Dataset:
        """Every example once, bucket by bucket."""
        return self._dataset(lambda: self.plan(None))

    def _dataset(self, plans) -> tf.data.Dataset:
        # Filler rows point at the empty row after the examples.
        tokens = self.split.rows
        targets = tf.constant(np.append(self.split.targets, FILLER_TARGET), tf.int32)

        def gather(indices, length):
            rows = tf.gather(tokens, indices)
            inputs = rows.to_tensor(shape=[self.batch_size, length])
            return {
                "inputs": tf.ensure_shape(
                    tf.cast(inputs, tf.int32), self.buckets.batch_shape
                ),
                "targets": tf.gather(targets, indices),
            }

        signature = (
            tf.TensorSpec([self.batch_size], tf.int64),
            tf.TensorSpec([], tf.int64),
        )
        dataset = tf.data.Dataset.from_generator(plans, output_signature=signature)
        dataset = dataset.map(gather, num_parallel_calls=tf.data.AUTOTUNE)
        return dataset.prefetch(tf.data.AUTOTUNE).with_options(untuned())
