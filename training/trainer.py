"""Training steps of a classifier under a `tf.distribute` strategy."""

import keras
import tensorflow as tf

from data.batching import FILLER_TARGET
from training.metrics import Totals, cross_entropy
from training.schedule import WarmupSchedule
from training.strategy import make_strategy


class Trainer:
    """Holds the optimizer of a model and runs its updates, many to one call.

    Args:
      model: made under the strategy's scope.
      settings: the `train` part of a config.
      strategy: where to run.
      jit_compile: compile an update by XLA; on one device only.
    """

    def __init__(
        self, model, settings, strategy: tf.distribute.Strategy, jit_compile=False
    ):
        self.model = model
        self.strategy = strategy
        self.schedule = WarmupSchedule(
            settings.learning_rate_max, model.hidden_dim, settings.warmup_steps
        )
        with strategy.scope():
            self.optimizer = keras.optimizers.Adam(
                self.schedule,
                beta_1=settings.adam_beta_1,
                beta_2=settings.adam_beta_2,
                epsilon=settings.adam_epsilon,
                name="adam",  # checkpoints name variables by it
            )
            self.optimizer.build(model.trainable_variables)
        update = self._update
        self._step = tf.function(update, jit_compile=True) if jit_compile else update
        self._loop = tf.function(self._steps)

    @property
    def step(self) -> int:
        """Updates taken so far, earlier runs included."""
        return int(self.optimizer.iterations.value.numpy())

    @property
    def learning_rate(self) -> float:
        """The rate of the next update."""
        return float(self.schedule(self.step))

    def iterate(self, dataset: tf.data.Dataset):
        """An iterator that deals each batch out to the strategy's replicas."""
        return iter(self.strategy.experimental_distribute_dataset(dataset))

    def train(self, iterator, num_steps: int) -> Totals:
        """Takes `num_steps` updates, dropout on; returns their totals."""
        totals = self._loop(iterator, tf.constant(num_steps))
        return Totals(*totals.numpy().tolist())

    def _steps(self, iterator, num_steps):
        totals = tf.zeros([3])
        for _ in tf.range(num_steps):
            step = self.strategy.run(self._step, args=(next(iterator),))
            totals += self.strategy.reduce("SUM", step, axis=None)
        return totals

    def _update(self, batch):
        targets = batch["targets"]
        real = tf.cast(targets != FILLER_TARGET, tf.float32)
        context = tf.distribute.get_replica_context()
        examples = context.all_reduce("SUM", tf.reduce_sum(real))
        with tf.GradientTape() as tape:
            logits = self.model(batch["inputs"], training=True)
            losses = cross_entropy(targets, logits) * real
            loss = tf.reduce_sum(losses) / examples
        weights = self.model.trainable_variables
        # The embedding's gradient comes as slices, of a shape that may differ between
        # replicas; Adam's moments are dense anyway.
        gradients = map(tf.convert_to_tensor, tape.gradient(loss, weights))
        self.optimizer.apply(list(gradients), weights)
        right = tf.argmax(logits, axis=1, output_type=targets.dtype) == targets
        correct = tf.reduce_sum(tf.cast(right, tf.float32))
        return tf.stack([tf.reduce_sum(losses), correct, tf.reduce_sum(real)])


def one_device_trainer(build, settings, dataset: tf.data.Dataset, jit_compile=False):
    """A trainer of a new model on one device, and its iterator over a dataset.

    Args:
      build: function without arguments that makes the model.
      settings: the `train` part of a config.
      dataset: batches.
      jit_compile: compile by XLA.
    """
    strategy = make_strategy("one_device")
    with strategy.scope():
        model = build()
    trainer = Trainer(model, settings, strategy, jit_compile)
    return trainer, trainer.iterate(dataset)
