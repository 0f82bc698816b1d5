"""Evaluation of a model on a device of JAX."""

from collections.abc import Callable

import jax
import keras
import numpy as np

from common.progress import progress_bar


class Evaluator:
    """Runs a model over all batches of a split, as that of TensorFlow.

    Args:
      model: with its weights.
      task: has `sums` and `initial_state`, as a `tasks.task.Task`.
    """

    def __init__(self, model, task, *_):
        self._model = model
        self._task = task
        self._next = jax.jit(self._sums)

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
        values = self._values()
        total, unit = batcher.num_batches, " batches"
        with progress_bar(desc=title, total=total, unit=unit, **bar) as progress:
            for batch in batches:
                sums, state = self._next(values, batch, state)
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
        batches, values = list(batches), self._values()

        def call():
            for batch in batches:
                jax.block_until_ready(self._next(values, batch, state))

        return call, batcher.num_batches / len(batches)

    def _batches(self, batcher, count=-1):
        """Batches of a split, and the state before the first."""
        dataset = batcher.evaluate().take(count)
        rows = dataset.element_spec["inputs"].shape[0]
        return dataset.as_numpy_iterator(), self._task.initial_state(rows)

    def _values(self):
        return [variable.value for variable in self._model.variables]

    def _sums(self, values, batch, state):
        pairs = zip(self._model.variables, values, strict=True)
        with keras.StatelessScope(state_mapping=[*pairs]):
            return self._task.sums(self._model, batch, state)
