"""What training and evaluation ask of the batches of a split, and those of rows that
are held in memory."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import numpy as np
import tensorflow as tf

from data.buckets import Buckets
from data.packed import PackedRows


class Batches:
    """Batches of a split.

    A batch is {"inputs": int32 [rows, length], "targets": ...}; id 0 is padding.

    Batches to train on have `for_training(seed, first_batch=0)`. It returns an endless
    `tf.data.Dataset`, of which epoch e is shuffled by (seed, e), a non-negative
    integer, unless it has the order of a text. `first_batch` counts over all epochs: a
    run that goes on sees what it would have seen.

    Batches to evaluate on have `for_evaluation()`. It returns a `tf.data.Dataset` of
    every example once.

    Attributes:
      buckets: `data.buckets.Buckets`, how they are batched. The last batch of a bucket
        is filled up with empty rows, so that no example is left out.
      fingerprint: a value for JSON that differs where the examples do; a run goes on
        with the same only. None where there is none.
      fillers: what an empty row is made of; it counts in no loss or metric.
      num_batches: of an epoch; None until known.
      num_examples: of an epoch; None until known.
    """

    fingerprint = None
    fillers = {"inputs": 0, "targets": 0}

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(rows, length) of the batches that there may be."""
        return self.buckets.shapes

    def has_fingerprint(self, stored) -> bool:
        """Whether the examples are those of a fingerprint that went through JSON."""
        return json.loads(json.dumps(self.fingerprint)) == stored

    def own_errors(self) -> AbstractContextManager:
        """Within it one iterates. What bad input raises is a `DataError` then."""
        return nullcontext()


class HeldBatches(Batches):
    """Batches of rows that are held in memory.

    Args:
      rows: of a split.
      buckets: how to batch them; the last one holds the longest row.
      subset: indices of the rows to use; None for all.
    """

    def __init__(self, rows: PackedRows, buckets: Buckets, subset=None):
        self.rows, self.buckets = rows, buckets
        self.subset = np.arange(len(rows)) if subset is None else subset
        self.fillers = rows.fillers
        self.num_batches = buckets.num_batches(buckets.count(rows.longest[self.subset]))
        self.num_examples = len(self.subset)

    @cached_property
    def fingerprint(self):
        rows = self.rows
        return fingerprint(rows.tokens, rows.lengths, rows.targets, self.subset)

    def has_fingerprint(self, stored):
        """See `Batches`. Earlier versions took that of pairs without their ends."""
        if super().has_fingerprint(stored):
            return True
        if self.rows.targets is not None:
            return False
        ends = np.cumsum(self.rows.lengths.ravel(), dtype=np.int64) - 1
        tokens = np.delete(self.rows.tokens, ends)
        return fingerprint(tokens, self.rows.lengths - 1) == stored

    def plan(self, random: np.random.Generator | None) -> list[tuple[int, np.ndarray]]:
        """One epoch: (bucket, indices of its rows) of every batch.

        Args:
          random: shuffles rows and batches; None keeps the order within buckets.
        """
        order = self.subset if random is None else random.permutation(self.subset)
        batches, _ = self.buckets.plan(self.rows.longest, order)
        if random is not None:
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def for_training(self, seed: int, first_batch: int = 0) -> tf.data.Dataset:
        """See `Batches`."""

        def plans():
            epoch, skip = divmod(first_batch, self.num_batches)
            while True:
                yield from self.plan(np.random.default_rng([seed, epoch]))[skip:]
                epoch, skip = epoch + 1, 0

        return self._dataset(plans)

    def for_evaluation(self) -> tf.data.Dataset:
        """See `Batches`; bucket by bucket."""
        return self._dataset(lambda: self.plan(None))

    def _dataset(self, plans):
        def batches():
            for bucket, indices in plans():
                yield self.rows.batch(indices, *self.buckets.shapes[bucket])

        return dataset(batches, self.buckets, has_classes=self.rows.targets is not None)


def dataset(
    batches: Callable[[], Iterator[dict]], buckets: Buckets, has_classes: bool = False
) -> tf.data.Dataset:
    """A dataset of what the function `batches` yields.

    Args:
      buckets: of the batches.
      has_classes: whether targets are classes, and not texts.
    """
    shape = buckets.batch_shape
    signature = {
        "inputs": tf.TensorSpec(shape, tf.int32),
        "targets": tf.TensorSpec(shape[:1] if has_classes else shape, tf.int32),
    }
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(untuned(2))


def untuned(num_threads: int) -> tf.data.Options:
    """Options of a dataset that TensorFlow does not tune while it is read.

    What tunes a dataset sleeps for about as long as it has run, up to a minute. At the
    dataset's end TensorFlow (2.20) wakes it a moment too early now and then; it sleeps
    on, and the end waits for it.

    Args:
      num_threads: of the dataset's own. A dataset whose generator waits for another
        dataset holds a thread; where all share a few threads, none would go on.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = num_threads
    return options


def fingerprint(*arrays: np.ndarray | None) -> str:
    """Differs where the arrays' contents do."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


def fill_rows(dataset: tf.data.Dataset, multiple: int, fillers) -> tf.data.Dataset:
    """Batches whose rows are filled up to a multiple with empty ones.

    Args:
      dataset: of batches.
      multiple: of rows.
      fillers: see `Batches`.
    """

    def fill(batch):
        def pad(x, filler):
            missing = -tf.shape(x)[0] % multiple
            ends = [[0, missing], *[[0, 0]] * (x.shape.rank - 1)]
            rows = x.shape[0] and -(-x.shape[0] // multiple) * multiple
            return tf.ensure_shape(
                tf.pad(x, ends, constant_values=filler), [rows, *x.shape[1:]]
            )

        return {name: pad(x, fillers[name]) for name, x in batch.items()}

    return dataset if multiple == 1 else dataset.map(fill)
