"""Evaluation of a model on a device of JAX."""

import jax
import keras

from training.evaluator import BatchEvaluator


class Evaluator(BatchEvaluator):
    """Runs a model over all batches of a split, as that of TensorFlow.

    Args:
      model: with its weights.
      task: has `sums` and `initial_state`, as a `tasks.task.Task`.
    """

    def __init__(self, model, task, *_):
        self._model = model
        self._task = task
        self._step = jax.jit(self._sums)

    def _batches(self, batcher, count=-1):
        """Batches of a split, and the state before the first."""
        dataset = batcher.for_evaluation().take(count)
        rows = dataset.element_spec["inputs"].shape[0]
        state = self._task.initial_state(rows, training=False)
        return dataset.as_numpy_iterator(), state

    def _next(self, batch, state):
        values = [variable.value for variable in self._model.variables]
        return self._step(values, batch, state)

    def _sums(self, values, batch, state):
        pairs = zip(self._model.variables, values, strict=True)
        with keras.StatelessScope(state_mapping=[*pairs]):
            return self._task.sums(self._model, batch, state)
