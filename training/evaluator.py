"""The loop of evaluation, of any backend."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from common.progress import progress_bar


class BatchEvaluator(ABC):
    """Runs a model over all batches of a split.

    A state that the task carries begins with the split, and goes from batch to batch.
    """

    def evaluate(self, batcher, title, on_batch=lambda: None, **bar) -> list:
        """The sums over all batches, NumPy values.

        Args:
          batcher: `data.batches.Batches` of the split.
          title: of a progress bar.
          on_batch: called after each batch.
          **bar: further arguments of `common.progress.progress_bar`.
        """
        totals = None
        batches, state = self._batches(batcher)
        total, unit = batcher.num_batches, " batches"
        with progress_bar(desc=title, total=total, unit=unit, **bar) as progress:
            for batch in batches:
                sums, state = self._next(batch, state)
                sums = [np.asarray(value) for value in sums]
                totals = sums if totals is None else [*map(np.add, totals, sums)]
                progress.update()
                on_batch()
        return totals

    def sample(self, batcher, count: int = 8) -> tuple[Callable, float]:
        """A part of `evaluate`, to be timed.

        Returns:
          A function that evaluates the first `count` batches, and how many times as
          long all of them take.
        """
        batches, state = self._batches(batcher, count)
        batches = list(batches)

        def call():
            for batch in batches:
                for value in self._next(batch, state)[0]:
                    np.asarray(value)

        return call, batcher.num_batches / len(batches)

    @abstractmethod
    def _batches(self, batcher, count=-1):
        """The first `count` batches of a split, and the state before them."""

    @abstractmethod
    def _next(self, batch, state):
        """The sums of a batch, arrays, and the state after it."""
