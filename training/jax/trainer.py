"""Training steps on a device of JAX."""

import jax
import jax.numpy as jnp
import keras
import numpy as np

from data.batches import fill_rows
from training.losses import masked_sums
from training.metrics import Totals
from training.schedule import adam_arguments
from training.trainer import BaseTrainer


class Trainer(BaseTrainer):
    """Holds the optimizer of a model and runs its updates, compiled by XLA.

    They are those of `training.tensorflow.trainer.Trainer`, equal but for rounding and
    for the masks of dropout.

    Args:
      model: with its weights.
      task: has `losses` and `initial_state`, as a `tasks.task.Task`.
      settings: the `train` part of a config.
    """

    steps_per_loop = 10

    def __init__(self, model, task, settings, *_):
        super().__init__(model, task, settings)
        self.row_multiple = settings.accumulate_steps
        self._carried = ()
        self.optimizer = keras.optimizers.Adam(
            self.schedule, **adam_arguments(settings)
        )
        self.optimizer.build(model.trainable_variables)
        self._step = jax.jit(self._update, donate_argnums=0)

    def iterate(self, dataset, fillers=None):
        """An iterator over batches. A state that the task carries begins anew.

        Args:
          dataset: a `tf.data.Dataset` of batches.
          fillers: of the empty rows that fill batches up to `row_multiple`; None where
            they are that already.
        """
        if fillers is not None:
            dataset = fill_rows(dataset, self.row_multiple, fillers)
        rows = dataset.element_spec["inputs"].shape[0]
        self._carried = self._task.initial_state(rows, training=True)
        return dataset.as_numpy_iterator()

    def carried(self) -> list[np.ndarray]:
        """The carried state, of all rows of a batch."""
        return [np.asarray(rows) for rows in jax.tree.leaves(self._carried)]

    def carry(self, arrays) -> None:
        """Takes up a carried state, as `carried` returned it, where one is given."""
        if len(arrays):
            self._carried = jax.tree.unflatten(
                jax.tree.structure(self._carried), list(map(jnp.asarray, arrays))
            )

    def train(self, iterator, num_steps: int) -> Totals:
        """Takes the updates of the next `num_steps` batches.

        Returns:
          The totals over these batches.

        Raises:
          NotFiniteError: if a loss or a gradient is infinite or no number.
        """
        first, variables = self.step, self._variables()
        state = jax.tree.map(lambda variable: variable.value, variables)
        latest = []
        try:
            for _ in range(num_steps):
                batch = next(iterator)
                state, self._carried, measured = self._step(state, self._carried, batch)
                latest.append(measured)
        finally:  # after bad input, too: the arrays that variables had are given away
            jax.tree.map(lambda variable, x: variable.assign(x), variables, state)
        measured = np.array(jax.device_get(latest))
        is_fine = np.isfinite(measured).all(axis=1)
        if not is_fine.all():
            number = int(np.argmin(is_fine))
            loss, _, targets, norm = measured[number]
            raise self._not_finite(first + number, loss / targets, norm)
        self.gradient_norm = float(measured[-1, 3])
        return Totals(*measured[:, :3].sum(axis=0).tolist())

    def _variables(self):
        model = self.model
        weights, non_trainable = (
            model.trainable_variables,
            model.non_trainable_variables,
        )
        return [*weights], [*non_trainable], [*self.optimizer.variables]

    def _update(self, state, carried, batch):
        """One update.

        Args:
          state: values of `_variables`.
          carried: the task's state.
          batch: of NumPy arrays.

        Returns:
          The next of both, and the sums of loss, right targets and targets, and the
          norm of the gradient, as one array.
        """
        weights, non_trainable, moments = state

        # The gradient of the sum over a microbatch.
        def add(totals, rows):
            non_trainable, gradients = totals
            slopes = jax.value_and_grad(self._loss, has_aux=True)
            (_, (non_trainable, *measured)), new = slopes(weights, non_trainable, *rows)
            return (non_trainable, jax.tree.map(jnp.add, gradients, new)), measured

        rows = jax.tree.map(self._in_microbatches, (carried, batch))
        start = (non_trainable, jax.tree.map(jnp.zeros_like, weights))
        (non_trainable, gradients), (sums, carried) = jax.lax.scan(add, start, rows)
        sums = sums.sum(axis=0)
        gradients = [gradient / sums[2] for gradient in gradients]

        # Clipping, update.
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in gradients))
        if self._clip_norm is not None:
            scale = jnp.minimum(1.0, self._clip_norm / norm)
            gradients = [gradient * scale for gradient in gradients]
        weights, moments = self.optimizer.stateless_apply(moments, gradients, weights)
        carried = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), carried)
        return (weights, non_trainable, moments), carried, jnp.append(sums, norm)

    def _loss(self, weights, non_trainable, carried, batch):
        """The summed loss; the variables that are no weights, the sums and the carried
        state after."""
        *variables, _ = self._variables()
        pairs = zip(sum(variables, []), [*weights, *non_trainable], strict=True)
        with keras.StatelessScope(state_mapping=[*pairs]) as scope:
            *losses, carried = self._task.losses(
                self.model, batch, carried, training=True
            )
            sums = jnp.stack(masked_sums(*losses))
        non_trainable = [scope.get_current_value(variable) for variable in variables[1]]
        return sums[0], (non_trainable, sums, carried)

    def _in_microbatches(self, x):
        """(rows, ...) as (microbatches, rows of one, ...)."""
        return x.reshape(self.row_multiple, -1, *x.shape[1:])
