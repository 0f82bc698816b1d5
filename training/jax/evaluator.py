"""Evaluation of a model on a device of JAX."""

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
        dataset = batcher.evaluate()
        state = self._task.initial_state(dataset.element_spec["inputs"].shape[0])
        values = [variable.value for variable in self._model.variables]
        total, unit = batcher.num_batches, " batches"
        with progress_bar(desc=title, total=total, unit=unit, **bar) as progress:
            for batch in dataset.as_numpy_iterator():
                sums, state = self._next(values, batch, state)
                sums = [np.asarray(value) for value in sums]
                totals = sums if totals is None else [*map(np.add, totals, sums)]
                progress.update()
                on_batch()
        return totals

    def _sums(self, values, batch, state):
        pairs = zip(self._model.variables, values, strict=True)
        with keras.StatelessScope(state_mapping=[*pairs]):
            return self._task.sums(self._model, batch, state)
