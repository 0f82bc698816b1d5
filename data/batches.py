"""What training and evaluation ask of the batches of a split."""

import hashlib
import json
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import tensorflow as tf


class Batches:
    """Batches of a split.

    A batch is {"inputs": int32 [rows, length], "targets": ...}; id 0 is padding.

    Batches to train on have `train(seed, first_batch=0)`. It returns an endless
    `tf.data.Dataset`, of which epoch e is shuffled by (seed, e). `first_batch` counts
    over all epochs: a run that goes on sees what it would have seen.

    Batches to evaluate on have `evaluate()`. It returns a `tf.data.Dataset` of every
    example once.

    Attributes:
      buckets: `data.buckets.Buckets`, how they are batched.
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
        """To iterate `train` within: what bad input raises then is a `DataError`."""
        return nullcontext()


def fingerprint(*arrays: np.ndarray) -> str:
    """Differs where the arrays' contents do."""
    digest = hashlib.sha256()
    for array in arrays:
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
