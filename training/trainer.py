"""Training steps under a `tf.distribute` strategy."""

import keras
import tensorflow as tf

from training.losses import masked_sums
from training.metrics import Totals
from training.schedule import WarmupSchedule
from training.strategy import make_strategy


class Trainer:
    """Holds the optimizer of a model and runs its updates, many to one call.

    Args:
      model: made under the strategy's scope.
      losses: function of model, batch and `training`, as `training.tasks` has.
      settings: the `train` part of a config.
      strategy: where to run.
      jit_compile: compile an update by XLA; on one device only.
    """

    def __init__(
        self,
        model,
        losses,
        settings,
        strategy: tf.distribute.Strategy,
        jit_compile=False,
    ):
        self.model = model
        self._losses = losses
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
            batch = next(iterator)
            # Where there is no batch, no part of an update may run: what is kept after
            # bad input is whole.
            arrived = tf.nest.flatten(batch, expand_composites=True)
            with tf.control_dependencies(arrived):
                step = self.strategy.run(self._step, args=(batch,))
            totals += self.strategy.reduce("SUM", step, axis=None)
        return totals

    def _update(self, batch):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            sums = masked_sums(*self._losses(self.model, batch, training=True))
            # The mean over the targets of all replicas' batches.
            loss = sums[0] / tf.stop_gradient(context.all_reduce("SUM", sums[2]))
        weights = self.model.trainable_variables
        # The embedding's gradient comes as slices, of a shape that may differ between
        # replicas; Adam's moments are dense anyway.
        gradients = map(tf.convert_to_tensor, tape.gradient(loss, weights))
        self.optimizer.apply(list(gradients), weights)
        return tf.stack(sums)


def one_device_trainer(
    build, losses, settings, dataset: tf.data.Dataset, jit_compile=False
):
    """A trainer of a new model on one device, and its iterator over a dataset.

    Args:
      build: function without arguments that makes the model.
      losses: as for `Trainer`.
      settings: the `train` part of a config.
      dataset: batches.
      jit_compile: compile by XLA.
    """
    strategy = make_strategy("one_device")
    with strategy.scope():
        model = build()
    trainer = Trainer(model, losses, settings, strategy, jit_compile)
    return trainer, trainer.iterate(dataset)
