"""Training steps under a `tf.distribute` strategy."""

import functools
import math

import numpy as np
import tensorflow as tf

from data.batches import fill_rows
from training.losses import masked_sums
from training.metrics import Totals
from training.schedule import adam_arguments
from training.tensorflow import workers
from training.tensorflow.memory_prediction import part_of_batch, predicted_bytes
from training.tensorflow.optimizer import Adam
from training.tensorflow.strategy import distribute, is_tpu
from training.trainer import BaseTrainer


class Trainer(BaseTrainer):
    """Holds the optimizer of a model and runs its updates, many to one call.

    An update's gradient is that of the mean loss over the targets of its whole batch,
    which replicas share. Each takes its rows in `accumulate_steps` microbatches, one
    after the other. The gradient's norm is cut to `clip_norm`. A task may carry a state
    from batch to batch. Each replica carries that of its own rows, and so does each
    microbatch.

    Args:
      model: made under the strategy's scope.
      task: has `losses` and `initial_state`, as a `tasks.task.Task`.
      settings: the `train` part of a config.
      strategy: where to run.
      jit_compile: compile an update by XLA; on one device only.
    """

    def __init__(
        self, model, task, settings, strategy: tf.distribute.Strategy, jit_compile=False
    ):
        super().__init__(model, task, settings)
        self.strategy = strategy
        self._microbatches = settings.accumulate_steps
        self._carried = None  # variables, made for the rows of the first batches
        with strategy.scope():
            self.optimizer = Adam(self.schedule, **adam_arguments(settings))
            self.optimizer.build(model.trainable_variables)
        update = self._update
        self._step = _graph(update, jit_compile=True) if jit_compile else update
        self._loop = _graph(self._steps)
        self._one = _graph(self._reduced)
        self._gather = _graph(self._gathered)
        # A TPU's program has one shape. Where batches have several, each has its own.
        self._shapes_differ = False

    @property
    def row_multiple(self) -> int:
        """What the rows of a batch must be a multiple of."""
        return self.strategy.num_replicas_in_sync * self._microbatches

    @property
    def steps_per_loop(self) -> int:
        """How many updates a call of `train` best takes."""
        # A TPU is idle while its host is in Python.
        return 100 if is_tpu(self.strategy) else 10

    def update_bytes(self, specs, shape: tuple[int, int]) -> int:
        """The memory that an update takes on a device, beside weights and moments.

        Arguments are those of `update_graph`.
        """
        weights = self.model.trainable_variables
        gradients = sum(4 * math.prod(weight.shape) for weight in weights)
        of_one = predicted_bytes(self.update_graph(specs, shape))
        return of_one + (gradients if self._microbatches > 1 else 0)

    def update_graph(self, specs, shape: tuple[int, int]) -> tf.Graph:
        """What an update does with a microbatch, up to its gradients, traced.

        Args:
          specs: the `element_spec` of a dataset of batches.
          shape: (rows, length) of the batch, of which a device takes its part.
        """
        weights = self.model.trainable_variables
        rows = -(-shape[0] // self.row_multiple)
        state = self._task.initial_state(rows, training=True)

        def slopes(batch):
            with tf.GradientTape() as tape:
                losses = self._task.losses(self.model, batch, state, training=True)
                sums = masked_sums(*losses[:3])
            return sums, _dense(tape.gradient(sums[0], weights))

        part = part_of_batch(specs, rows, shape[1])
        return _graph(slopes).get_concrete_function(part).graph

    def iterate(self, dataset: tf.data.Dataset, fillers=None):
        """An iterator that deals each batch out to the strategy's replicas.

        A state that the task carries begins anew.

        Args:
          dataset: of batches; all of one number of rows, if a state is carried.
          fillers: of the empty rows that fill batches up to `row_multiple`; None where
            they are that already.
        """
        if fillers is not None:
            dataset = fill_rows(dataset, self.row_multiple, fillers)
        shapes = [spec.shape for spec in tf.nest.flatten(dataset.element_spec)]
        self._shapes_differ = not all(shape.is_fully_defined() for shape in shapes)
        rows = shapes[0][0]
        self._begin(rows and rows // self.strategy.num_replicas_in_sync)
        return iter(distribute(dataset, self.strategy))

    def _begin(self, rows):
        start = self._task.initial_state(rows, training=True)
        if self._carried is None:
            with self.strategy.scope():
                self._carried = tf.nest.map_structure(_variable_of_each_replica, start)
        for variable, value in self._carried_and(start):
            for copy in self.strategy.experimental_local_results(variable):
                copy.assign(value)

    def carried(self) -> list[np.ndarray]:
        """The carried state, of all rows of a batch; all workers have to ask for it."""
        if not tf.nest.flatten(self._carried):
            return []
        local = self.strategy.experimental_local_results
        return [local(rows)[0].numpy() for rows in self._gather()]

    def carry(self, arrays) -> None:
        """Takes up a carried state, as `carried` returned it, where one is given."""
        for variable, rows in self._carried_and(arrays) if len(arrays) else []:
            copies = self.strategy.experimental_local_results(variable)
            first = workers.place(self.strategy)[0] * len(copies)
            for number, copy in enumerate(copies, start=first):
                value = copy.numpy()
                part = rows[number * len(value) :][: len(value)]
                # Other devices may fill a batch up to more rows.
                value[: len(part)] = part.view(value.dtype)
                copy.assign(value)

    def _gathered(self):
        def gather():
            context = tf.distribute.get_replica_context()
            values = [x.read_value() for x in tf.nest.flatten(self._carried)]
            return [context.all_gather(value, axis=0) for value in values]

        return self.strategy.run(gather)

    def _carried_and(self, values):
        return zip(tf.nest.flatten(self._carried), tf.nest.flatten(values), strict=True)

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
            raise self._not_finite(first + int(number), loss, failed_norm)
        self.gradient_norm = float(norm)
        return Totals(*totals.numpy().tolist())

    def _update(self, batch):
        """One update, from a replica's rows of a batch to the new weights.

        Returns:
          The sums of loss, right targets and targets of these rows, and the norm of
          the gradient of all rows.
        """
        weights = self.model.trainable_variables
        replicas = tf.distribute.get_replica_context()
        state = tf.nest.map_structure(lambda x: x.read_value(), self._carried)

        # Loss and gradient: of the mean over all targets, or of a microbatch's sum.
        def slopes(batch, state):
            with tf.GradientTape() as tape:
                *losses, state = self._task.losses(
                    self.model, batch, state, training=True
                )
                sums = loss, _, targets = masked_sums(*losses)
                if self._microbatches == 1:
                    loss /= tf.stop_gradient(replicas.all_reduce("SUM", targets))
            return [*sums, *_dense(tape.gradient(loss, weights))], state

        if self._microbatches == 1:
            totals, state = slopes(batch, state)
        else:
            batch, state = tf.nest.map_structure(self._in_microbatches, (batch, state))
            shapes = [(), (), (), *(weight.shape for weight in weights)]

            def add(number, totals, state):
                microbatch = tf.nest.map_structure(lambda x: x[number], (batch, state))
                new, next_state = slopes(*microbatch)
                totals = [a + b for a, b in zip(totals, new, strict=True)]
                put = functools.partial(tf.tensor_scatter_nd_update, indices=[[number]])
                state = tf.nest.map_structure(
                    lambda x, rows: put(x, updates=[rows]), state, next_state
                )
                return number + 1, totals, state

            # One after the other: side by side they would hold as much as the whole.
            _, totals, state = tf.while_loop(
                lambda number, *_: number < self._microbatches,
                add,
                (0, [tf.zeros(shape) for shape in shapes], state),
                parallel_iterations=1,
            )
            targets = replicas.all_reduce("SUM", totals[2])
            totals[3:] = [gradient / targets for gradient in totals[3:]]
        sums, gradients = totals[:3], totals[3:]

        # Reduction over replicas, clipping, update.
        gradients = replicas.all_reduce("SUM", gradients)
        norm = tf.linalg.global_norm(gradients)
        if self._clip_norm is not None:
            scale = tf.minimum(1.0, self._clip_norm / norm)
            gradients = [gradient * scale for gradient in gradients]
        self.optimizer.apply(gradients, weights)
        for variable, rows in self._carried_and(state):
            variable.assign(tf.reshape(rows, variable.shape))
        return tf.stack(sums), norm

    def _in_microbatches(self, x):
        """(rows, ...) as (microbatches, rows of one, ...)."""
        shape, rows = tf.shape(x), x.shape[0] and x.shape[0] // self._microbatches
        split = [[self._microbatches, shape[0] // self._microbatches], shape[1:]]
        microbatches = tf.reshape(x, tf.concat(split, axis=0))
        return tf.ensure_shape(microbatches, [self._microbatches, rows, *x.shape[1:]])

    def _reduced(self, batch):
        """One update: its sums over all replicas, and its gradient's norm."""
        sums, norm = self.strategy.run(self._step, args=(batch,))
        sums = self.strategy.reduce("SUM", sums, axis=None)
        return sums, self.strategy.reduce("MEAN", norm, axis=None)

    def _steps(self, iterator, num_steps):
        def step(number, totals, _, failure):
            batch = iterator.get_next()
            # Where there is no batch, nothing of an update may run: what is kept after
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
        """Does what `_steps` does, and returns to Python after each update."""
        totals, norm, failure = _nothing_yet()
        for number in range(num_steps):
            sums, norm = self._one(next(iterator))
            failure = _first_failure(failure, number, sums, norm)
            totals += sums
        return totals, norm, failure


def _graph(function, **options):
    # AutoGraph would add seconds to each start, and nothing here needs it.
    return tf.function(function, autograph=False, **options)


def _dense(gradients):
    # An embedding's gradient comes as slices, of a shape that may differ between
    # replicas. Adam's moments are dense anyway.
    return [tf.convert_to_tensor(x) for x in gradients]


def _variable_of_each_replica(start):
    return tf.Variable(
        start,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


def _nothing_yet():
    """Totals and norm of no updates, and the number, loss and norm of a failed one."""
    return tf.zeros([3]), tf.zeros([]), tf.constant([-1.0, 0.0, 0.0])


def _first_failure(failure, number, sums, norm):
    latest = tf.stack([tf.cast(number, tf.float32), sums[0] / sums[2], norm])
    is_fine = tf.reduce_all(tf.math.is_finite(latest)) | (failure[0] >= 0)
    return tf.where(is_fine, failure, latest)
