"""Batches of pairs: one static shape per length bucket, in an order that seeds fix."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import tensorflow as tf

from common.progress import progress_bar
from data.batches import Batches, fingerprint
from data.buckets import Buckets
from data.dataset_options import untuned
from data.errors import DataError
from data.pairs.packed import PackedPairs

logger = logging.getLogger("transevolve")


class EvaluationBatcher(Batches):
    """Batches of pairs that are held in memory.

    Args:
      pairs: none longer than the last bucket.
      buckets: how to batch them.
    """

    def __init__(self, pairs: PackedPairs, buckets: Buckets):
        self.pairs = pairs
        self.buckets = buckets
        self.num_examples = len(pairs)
        self.num_batches = buckets.num_batches(buckets.count(pairs.longer_sides))

    @cached_property
    def fingerprint(self):
        return fingerprint(self.pairs.tokens, self.pairs.lengths)

    def evaluate(self) -> tf.data.Dataset:
        """Every pair once, bucket by bucket."""

        def batches():
            order = np.arange(len(self.pairs))
            plan, _ = self.buckets.plan(self.pairs.longer_sides, order)
            for batch in plan:
                yield _fill(self.buckets, self.pairs, *batch)

        return _dataset(self.buckets, batches)


class StreamingBatcher(Batches):
    """Batches of pairs that are read anew in each epoch, shuffled within windows.

    A pair that no bucket holds is left out. The last batch of each bucket in an epoch
    is filled up with empty rows, so no other pair is.

    Args:
      name: of the split, for messages.
      make_stream: function without arguments that returns a new `PairStream`.
      buckets: how to batch.
      shuffle_window: pairs that are shuffled together. Two windows are held in memory:
        one is dealt while the next fills.
      fingerprint: of the pairs, see `Batches`.
      earlier_fingerprint: function without arguments that returns the one which earlier
        versions kept of such pairs; None if it was the same.

    Attributes:
      num_batches: of an epoch; None until one has been read to its end. A run that goes
        on may set it, to start in its epoch without reading all those before.
      num_examples: pairs of an epoch, those left out not counted; None likewise. A run
        that goes on may set it, too.
      counts: how many pairs were read, left out as too long, and skipped as bad rows;
        None likewise.
    """

    def __init__(
        self,
        name: str,
        make_stream,
        buckets: Buckets,
        shuffle_window: int,
        fingerprint=None,
        earlier_fingerprint=None,
    ):
        self.name = name
        self.fingerprint = fingerprint
        self.buckets = buckets
        self.shuffle_window = shuffle_window
        self.num_batches = None
        self.num_examples = None
        self.counts = None
        self._so_far = {"read": 0, "too_long": 0, "skipped": 0}
        self._earlier_fingerprint = earlier_fingerprint
        self._make_stream = make_stream
        self._failure = None

    def has_fingerprint(self, stored):
        if super().has_fingerprint(stored):
            return True
        return self._earlier_fingerprint is not None and (
            self._earlier_fingerprint() == stored
        )

    def train(self, seed: int, first_batch: int = 0) -> tf.data.Dataset:
        """Endless batches; epoch e is shuffled by (seed, e).

        Args:
          seed: non-negative integer.
          first_batch: where to start, counted over all epochs: a run that goes on
            sees what it would have seen.

        Bad input ends it with an error of TensorFlow: iterate `with own_errors()`.
        """

        def batches():
            try:
                yield from self._batches(seed, first_batch)
            except Exception as error:
                self._failure = error
                raise

        return _dataset(self.buckets, batches)

    @contextmanager
    def own_errors(self):
        """Raises the `DataError` that ended a dataset instead of TensorFlow's error.

        At the end, logs what has been read and left out, if no epoch has ended.
        """
        try:
            yield
        except tf.errors.OpError:
            if self._failure is None:
                raise
            raise self._failure from None
        if self.counts is None:
            logger.info("%s: so far %s", self.name, self._summary())

    def _batches(self, seed, first_batch):
        epoch, skip = 0, first_batch
        if self.num_batches is not None:
            epoch, skip = divmod(first_batch, self.num_batches)
        random = np.random.default_rng([seed, epoch])
        progress = progress_bar(
            desc=f"reading {self.name} up to the first batch",
            unit=" pairs",
            unit_scale=True,
            delay=2,
            leave=False,
        )
        window = _Window(self._chunks(progress))
        left = []
        while True:
            window.fill(self.shuffle_window)
            pairs, is_last = window.take(left)
            order = random.permutation(len(pairs))
            batches, rest = self.buckets.plan(pairs.longer_sides, order, flush=is_last)
            for number, index in enumerate(random.permutation(len(batches)), start=1):
                if skip:
                    skip -= 1
                    continue
                # Bit by bit, so that no step waits for a whole window.
                window.fill(self.shuffle_window * number // len(batches))
                progress.close()
                yield _fill(self.buckets, pairs, *batches[index])
            left = [pairs.take(rest)]
            del pairs  # before the next window is joined
            if is_last:
                epoch += 1
                random = np.random.default_rng([seed, epoch])

    def _chunks(self, progress):
        """Yields the pairs that a bucket holds, a chunk at a time; None ends an epoch.

        Without end, unless by a `DataError`.
        """
        stream = self._make_stream()
        longest = self.buckets.lengths[-1]
        while True:
            num_read, sizes = 0, np.zeros(len(self.buckets.lengths), np.int64)
            for chunk in stream.chunks():
                num_read += len(chunk)
                progress.update(len(chunk))
                fits = chunk.longer_sides <= longest
                if not fits.all():
                    chunk = chunk.take(np.flatnonzero(fits))
                sizes += self.buckets.count(chunk.longer_sides)
                self._count(num_read, sizes, stream.skipped)
                yield chunk
            self._count(num_read, sizes, stream.skipped)
            self._end_epoch(sizes)
            yield None

    def _count(self, num_read, sizes, skipped):
        too_long = num_read - int(sizes.sum())
        self._so_far = {"read": num_read, "too_long": too_long, "skipped": skipped}

    def _summary(self):
        return (
            f"{self._so_far['read']:,} pairs, {self._so_far['too_long']:,} left out as "
            f"longer than {self.buckets.lengths[-1] - 1} subwords, "
            f"{self._so_far['skipped']:,} bad rows skipped"
        )

    def _end_epoch(self, sizes):
        num_examples, num_batches = int(sizes.sum()), self.buckets.num_batches(sizes)
        summary = self._summary()
        if not num_examples:
            raise DataError(f"{self.name}: expected pairs to train on, found {summary}")
        if self.num_batches not in (None, num_batches):
            raise DataError(
                f"{self.name}: expected {self.num_batches:,} batches in an epoch, as "
                f"before, found {num_batches:,}: the data is not the same"
            )
        if self.counts is None:
            logger.info("%s: %s", self.name, summary)
        self.num_batches, self.num_examples = num_batches, num_examples
        self.counts = self._so_far


class _Window:
    """The next pairs to shuffle together, all of one epoch."""

    def __init__(self, chunks: Iterator[PackedPairs | None]):
        self._chunks = chunks
        self._parts, self._num_pairs, self._is_last = [], 0, False

    def fill(self, num_pairs: int):
        """Reads until so many pairs are there, or the epoch ends."""
        while self._num_pairs < num_pairs and not self._is_last:
            chunk = next(self._chunks)
            if chunk is None:
                self._is_last = True
            else:
                self._parts.append(chunk)
                self._num_pairs += len(chunk)

    def take(self, left: list[PackedPairs]) -> tuple[PackedPairs, bool]:
        """What was left before and what was read, and whether the epoch ends here."""
        taken = PackedPairs.join(left + self._parts), self._is_last
        self._parts, self._num_pairs, self._is_last = [], 0, False
        return taken


def _fill(buckets, pairs, bucket, indices):
    """The batch of a bucket, filled up with empty rows."""
    return pairs.batch(indices, buckets.rows[bucket], buckets.lengths[bucket])


def _dataset(buckets, batches):
    """A dataset of what the function `batches` yields."""
    spec = tf.TensorSpec(buckets.batch_shape, tf.int32)
    dataset = tf.data.Dataset.from_generator(
        batches, output_signature={"inputs": spec, "targets": spec}
    )
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(untuned(2))
