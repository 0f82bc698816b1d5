"""Training steps under a `tf.distribute` strategy."""

import math

import tensorflow as tf

from common.errors import UserError
from data.batches import fill_rows
from training.adam import Adam
from training.losses import masked_sums
from training.memory import part_of_batch, predicted_bytes
from training.metrics import Totals
from training.schedule import WarmupSchedule
from training.strategy import distribute, is_tpu, make_strategy


class NotFiniteError(UserError):
    """Training has left the numbers; the weights are of no use any more."""


class Trainer:
    """Holds the optimizer of a model and runs its updates, many to one call.

    An update's gradient is that of the mean loss over the targets of its whole batch,
    which replicas share, and of which each takes `accumulate_steps` parts one after
    the other. Its norm is cut to `clip_norm`.

    Args:
      model: made under the strategy's scope.
      losses: function of model, batch and `training`, as `tasks` has.
      settings: the `train` part of a config.
      strategy: where to run.
      jit_compile: compile an update by XLA; on one device only.

    Attributes:
      gradient_norm: of the latest update, before it was cut.
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
        self._parts = settings.accumulate_steps
        self._clip_norm = settings.clip_norm
        self.gradient_norm = 0.0
        self.schedule = WarmupSchedule(
            settings.learning_rate_max, model.hidden_dim, settings.warmup_steps
        )
        with strategy.scope():
            self.optimizer = Adam(
                self.schedule,
                beta_1=settings.adam_beta_1,
                beta_2=settings.adam_beta_2,
                epsilon=settings.adam_epsilon,
                name="adam",  # checkpoints name variables by it
            )
            self.optimizer.build(model.trainable_variables)
        update = self._update
        self._step = _graph(update, jit_compile=True) if jit_compile else update
        self._loop = _graph(self._steps)
        self._one = _graph(self._reduced)
        # A TPU's program has one shape. Where batches have several, each has its own.
        self._shapes_differ = False

    @property
    def step(self) -> int:
        """Updates taken so far, earlier runs included."""
        return int(self.optimizer.iterations.value.numpy())

    @property
    def learning_rate(self) -> float:
        """The rate of the next update."""
        return float(self.schedule(self.step))

    @property
    def row_multiple(self) -> int:
        """What the rows of a batch must be a multiple of."""
        return self.strategy.num_replicas_in_sync * self._parts

    def update_bytes(self, specs, shape: tuple[int, int]) -> int:
        """The memory that an update takes on a device, beside weights and moments.

        Args:
          specs: the `element_spec` of a dataset of batches.
          shape: (rows, length) of the batch, of which a device takes its part.
        """
        rows, length = shape
        part = part_of_batch(specs, -(-rows // self.row_multiple), length)
        graph = _graph(self._part).get_concrete_function(part).graph
        weights = self.model.trainable_variables
        gradients = sum(4 * math.prod(weight.shape) for weight in weights)
        return predicted_bytes(graph) + (gradients if self._parts > 1 else 0)

    def iterate(self, dataset: tf.data.Dataset, fillers=None):
        """An iterator that deals each batch out to the strategy's replicas.

        Args:
          dataset: of batches.
          fillers: of the empty rows that fill batches up to `row_multiple`; None where
            they are that already.
        """
        if fillers is not None:
            dataset = fill_rows(dataset, self.row_multiple, fillers)
        shapes = [spec.shape for spec in tf.nest.flatten(dataset.element_spec)]
        self._shapes_differ = not all(shape.is_fully_defined() for shape in shapes)
        return iter(distribute(dataset, self.strategy))

    def train(self, iterator, num_steps: int) -> Totals:
        """Takes `num_steps` updates, dropout on; returns their totals.

        Raises:
          NotFiniteError: if a loss or a gradient is infinite or no number.
        """
        first = self.step
        if is_tpu(self.strategy) and self._shapes_differ:
            totals, norm, failure = self._each(iterator, num_steps)
        else:
            totals, norm, failure = self._loop(iterator, tf.constant(num_steps))
        number, loss, failed_norm = failure.numpy().tolist()
        if number >= 0:
            step = first + int(number)
            raise NotFiniteError(
                f"step {step + 1}: expected a finite loss and gradient, found a loss "
                f"of {loss:g} and a gradient of norm {failed_norm:g}, at a learning "
                f"rate of {float(self.schedule(step)):g}"
            )
        self.gradient_norm = float(norm)
        return Totals(*totals.numpy().tolist())

    def check_weights(self) -> None:
        """Checks what is about to be saved.

        Raises:
          NotFiniteError: if a weight is infinite or no number.
        """
        for weight in self.model.trainable_variables:
            if not tf.reduce_all(tf.math.is_finite(weight.value)):
                raise NotFiniteError(
                    f"step {self.step}: expected finite weights, found others in "
                    f"{weight.path}, at a learning rate of {self.learning_rate:g}"
                )

    def _steps(self, iterator, num_steps):
        def step(number, totals, _, failure):
            batch = iterator.get_next()
            # Where there is no batch, no part of an update may run: what is kept after
            # bad input is whole.
            arrived = tf.nest.flatten(batch, expand_composites=True)
            with tf.control_dependencies(arrived):
                sums, norm = self._reduced(batch)
            failure = _first_failure(failure, number, sums, norm)
            return number + 1, totals + sums, norm, failure

        return tf.while_loop(
            lambda number, *_: number < num_steps, step, (0, *_nothing_yet())
        )[1:]

    def _each(self, iterator, num_steps):
        """As `_steps`, with a return to Python after each update."""
        totals, norm, failure = _nothing_yet()
        for number in range(num_steps):
            sums, norm = self._one(next(iterator))
            failure = _first_failure(failure, number, sums, norm)
            totals += sums
        return totals, norm, failure

    def _reduced(self, batch):
        """One update: its sums over all replicas, and its gradient's norm."""
        sums, norm = self.strategy.run(self._step, args=(batch,))
        sums = self.strategy.reduce("SUM", sums, axis=None)
        return sums, self.strategy.reduce("MEAN", norm, axis=None)

    def _update(self, batch):
        sums, gradients = self._gradients(batch)
        weights = self.model.trainable_variables
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce("SUM", gradients)
        norm = tf.linalg.global_norm(gradients)
        if self._clip_norm is not None:
            scale = tf.minimum(1.0, self._clip_norm / norm)
            gradients = [gradient * scale for gradient in gradients]
        self.optimizer.apply(gradients, weights)
        return tf.stack(sums), norm

    def _gradients(self, batch):
        """Sums of loss, right targets and targets of a replica's part of a batch, and
        its part of the gradient of the mean over the targets of all parts."""
        context = tf.distribute.get_replica_context()
        if self._parts == 1:
            with tf.GradientTape() as tape:
                sums = masked_sums(*self._losses(self.model, batch, training=True))
                targets = tf.stop_gradient(context.all_reduce("SUM", sums[2]))
                loss = sums[0] / targets
            return sums, self._dense(tape, loss)

        def split(x):
            shape = tf.shape(x)
            rows = shape[0] // self._parts
            static_rows = x.shape[0] and x.shape[0] // self._parts
            shape = tf.concat([[self._parts, rows], shape[1:]], axis=0)
            parts = tf.reshape(x, shape)
            parts.set_shape([self._parts, static_rows, *x.shape[1:]])
            return parts

        batch = tf.nest.map_structure(split, batch)

        def add(number, totals, gradients):
            part = tf.nest.map_structure(lambda x: x[number], batch)
            sums, new = self._part(part)
            totals = [a + b for a, b in zip(totals, sums, strict=True)]
            gradients = [a + b for a, b in zip(gradients, new, strict=True)]
            return number + 1, totals, gradients

        zeros = [tf.zeros(w.shape) for w in self.model.trainable_variables]
        # One after the other: side by side they would hold as much as the whole.
        _, totals, gradients = tf.while_loop(
            lambda number, *_: number < self._parts,
            add,
            (0, [tf.zeros([])] * 3, zeros),
            parallel_iterations=1,
        )
        targets = context.all_reduce("SUM", totals[2])
        return totals, [gradient / targets for gradient in gradients]

    def _part(self, batch):
        """The sums of a part of a batch, and the gradient of its summed loss."""
        with tf.GradientTape() as tape:
            sums = masked_sums(*self._losses(self.model, batch, training=True))
        return sums, self._dense(tape, sums[0])

    def _dense(self, tape, loss):
        # The embedding's gradient comes as slices, of a shape that may differ between
        # replicas; Adam's moments are dense anyway.
        weights = self.model.trainable_variables
        return [tf.convert_to_tensor(x) for x in tape.gradient(loss, weights)]


def _graph(function, **options):
    # AutoGraph would add seconds to each start, and nothing here needs it.
    return tf.function(function, autograph=False, **options)


def _nothing_yet():
    """Totals and norm of no updates, and the number, loss and norm of a failed one."""
    return tf.zeros([3]), tf.zeros([]), tf.constant([-1.0, 0.0, 0.0])


def _first_failure(failure, number, sums, norm):
    found = tf.stack([tf.cast(number, tf.float32), sums[0] / sums[2], norm])
    is_fine = tf.reduce_all(tf.math.is_finite(found)) | (failure[0] >= 0)
    return tf.where(is_fine, failure, found)


def one_device_trainer(
    build,
    losses,
    settings,
    dataset: tf.data.Dataset,
    jit_compile=False,
    fillers=None,
):
    """A trainer of a new model on one device, and its iterator over a dataset.

    Args:
      build: function without arguments that makes the model.
      losses: as for `Trainer`.
      settings: the `train` part of a config.
      dataset: batches.
      jit_compile: compile by XLA.
      fillers: of the dataset's batches.
    """
    strategy = make_strategy("one_device")
    with strategy.scope():
        model = build()
    trainer = Trainer(model, losses, settings, strategy, jit_compile)
    return trainer, trainer.iterate(dataset, fillers)
