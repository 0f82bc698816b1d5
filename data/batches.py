"""What training and evaluation ask of the batches of a split."""

from contextlib import AbstractContextManager, nullcontext


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
      num_batches: of an epoch; None until known.
      num_examples: of an epoch; None until known.
    """

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(rows, length) of the batches that there may be."""
        return self.buckets.shapes

    def own_errors(self) -> AbstractContextManager:
        """To iterate `train` within: what bad input raises then is a `DataError`."""
        return nullcontext()
