"""Evaluation of a classifier under a `tf.distribute` strategy."""

import numpy as np
import tensorflow as tf

from data.batching import FILLER_TARGET, Batcher
from training.metrics import Totals, cross_entropy

STEPS_PER_LOOP = 10


class Evaluator:
    """Runs a model over all examples of a split.

    Args:
      model: made under the strategy's scope.
      strategy: where to run.
    """

    def __init__(self, model, strategy: tf.distribute.Strategy):
        self.model = model
        self.strategy = strategy
        self._loop = tf.function(self._steps)

    def evaluate(self, batcher: Batcher, on_progress=lambda examples: None):
        """Evaluates all examples of a batcher.

        Args:
          batcher: of the split.
          on_progress: called with a number of examples just done.

        Returns:
          `Totals`, and the confusion matrix, int64 (classes, classes): how many
          examples of the row's class were given the column's.
        """
        dataset = self.strategy.experimental_distribute_dataset(batcher.evaluate())
        iterator = iter(dataset)
        loss, confusion = 0.0, 0
        for start in range(0, batcher.num_batches, STEPS_PER_LOOP):
            num_steps = min(STEPS_PER_LOOP, batcher.num_batches - start)
            losses, counts = self._loop(iterator, tf.constant(num_steps))
            loss += float(losses)
            confusion += counts.numpy()
            on_progress(int(counts.numpy().sum()))
        return Totals(loss, int(np.trace(confusion)), int(confusion.sum())), confusion

    def _steps(self, iterator, num_steps):
        classes = self.model.num_classes
        loss = tf.zeros([])
        confusion = tf.zeros([classes, classes], tf.int64)
        for _ in tf.range(num_steps):
            step = self.strategy.run(self._step, args=(next(iterator),))
            losses, counts = self.strategy.reduce("SUM", step, axis=None)
            loss += losses
            confusion += counts
        return loss, confusion

    def _step(self, batch):
        logits = self.model(batch["inputs"], training=False)
        targets = batch["targets"]
        real = targets != FILLER_TARGET
        losses = cross_entropy(targets, logits) * tf.cast(real, tf.float32)
        counts = tf.math.confusion_matrix(
            tf.maximum(targets, 0),
            tf.argmax(logits, axis=1),
            self.model.num_classes,
            weights=tf.cast(real, tf.int64),
            dtype=tf.int64,
        )
        return tf.reduce_sum(losses), counts
