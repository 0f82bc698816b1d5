"""Evaluation of a model under a `tf.distribute` strategy."""

import tensorflow as tf

from data.batches import fill_rows
from training.evaluator import BatchEvaluator
from training.tensorflow.memory_prediction import part_of_batch, predicted_bytes
from training.tensorflow.strategy import distribute


class Evaluator(BatchEvaluator):
    """See `BatchEvaluator`.

    Args:
      model: made under the strategy's scope.
      task: has `sums` and `initial_state`, as a `tasks.task.Task`.
      strategy: where to run.
    """

    def __init__(self, model, task, strategy: tf.distribute.Strategy):
        self.strategy = strategy
        self._task = task
        self._step = lambda batch, state: task.sums(model, batch, state)
        self._reduce = tf.function(self._reduced, autograph=False)

    def batch_bytes(self, specs, shape: tuple[int, int]) -> int:
        """The memory that a batch takes on a device.

        Args:
          specs: the `element_spec` of a dataset of batches.
          shape: (rows, length) of the batch, of which a device takes its part.
        """
        rows = -(-shape[0] // self.strategy.num_replicas_in_sync)
        part = part_of_batch(specs, rows, shape[1])
        step = tf.function(self._step, autograph=False)
        state = self._task.initial_state(rows, training=False)
        return predicted_bytes(step.get_concrete_function(part, state).graph)

    def _batches(self, batcher, count=-1):
        """Batches of a split, dealt out, and the state before the first."""
        replicas = self.strategy.num_replicas_in_sync
        dataset = fill_rows(
            batcher.for_evaluation().take(count), replicas, batcher.fillers
        )
        rows = tf.nest.flatten(dataset.element_spec)[0].shape[0]
        of_replica = rows and rows // replicas
        state = self._task.initial_state(of_replica, training=False)
        if replicas > 1:
            deal = self.strategy.experimental_distribute_values_from_function
            state = tf.nest.map_structure(lambda x: deal(lambda context: x), state)
        return distribute(dataset, self.strategy), state

    def _reduced(self, batch, state):
        sums, state = self.strategy.run(self._step, args=(batch, state))
        # One by one: workers cannot reduce a list of several types.
        reduce = self.strategy.reduce
        return [reduce("SUM", value, axis=None) for value in sums], state

    def _next(self, batch, state):
        return self._reduce(batch, state)
