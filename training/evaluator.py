"""Evaluation of a model under a `tf.distribute` strategy."""

from collections.abc import Callable

import tensorflow as tf

from data.batches import fill_rows
from training.memory import part_of_batch, predicted_bytes
from training.strategy import distribute


class Evaluator:
    """Runs a model over all batches of a split.

    Args:
      model: made under the strategy's scope.
      sums: function of model and batch that returns tensors to be added up, as
        `tasks` has.
      strategy: where to run.
    """

    def __init__(self, model, sums, strategy: tf.distribute.Strategy):
        self.strategy = strategy
        self._step = lambda batch: sums(model, batch)
        self._next = tf.function(self._reduced, autograph=False)

    def evaluate(self, batcher, on_progress=lambda num_batches: None) -> list:
        """The sums over all batches, NumPy values.

        Args:
          batcher: of the split, with `evaluate()` and `num_batches`.
          on_progress: called with a number of batches just done.
        """
        totals = None
        for batch in self._batches(batcher):
            sums = [value.numpy() for value in self._next(batch)]
            totals = (
                sums
                if totals is None
                else [a + b for a, b in zip(totals, sums, strict=True)]
            )
            on_progress(1)
        return totals

    def sample(self, batcher, count: int = 8) -> tuple[Callable, float]:
        """A part of `evaluate`, to be timed.

        Returns:
          A function that evaluates the first `count` batches, and how many times as
          long all of them take.
        """
        batches = list(self._batches(batcher, count))

        def call():
            for batch in batches:
                for value in self._next(batch):
                    value.numpy()

        return call, batcher.num_batches / len(batches)

    def batch_bytes(self, specs, shape: tuple[int, int]) -> int:
        """The memory that a batch takes on a device.

        Args:
          specs: the `element_spec` of a dataset of batches.
          shape: (rows, length) of the batch, of which a device takes its part.
        """
        rows = -(-shape[0] // self.strategy.num_replicas_in_sync)
        part = part_of_batch(specs, rows, shape[1])
        step = tf.function(self._step, autograph=False)
        return predicted_bytes(step.get_concrete_function(part).graph)

    def _batches(self, batcher, count=-1):
        dataset = fill_rows(
            batcher.evaluate().take(count),
            self.strategy.num_replicas_in_sync,
            batcher.fillers,
        )
        return distribute(dataset, self.strategy)

    def _reduced(self, batch):
        sums = self.strategy.run(self._step, args=(batch,))
        # One by one: workers cannot reduce a list of several types.
        return [self.strategy.reduce("SUM", value, axis=None) for value in sums]
