"""What trainers have in common, on any backend."""

from keras import ops

from training.metrics import NotFiniteError
from training.schedule import make_schedule


class BaseTrainer:
    """Counts updates, and checks what they give. A subclass makes `optimizer`.

    Args:
      model: with its weights.
      task: has `losses` and `initial_state`, as a `tasks.task.Task`.
      settings: the `train` part of a config.

    Attributes:
      gradient_norm: of the latest update, before it was cut.
    """

    def __init__(self, model, task, settings):
        self.model = model
        self.schedule = make_schedule(settings, model.hidden_dim)
        self.gradient_norm = 0.0
        self._task = task
        self._clip_norm = settings.clip_norm

    @property
    def step(self) -> int:
        """Updates taken so far, earlier runs included."""
        return int(ops.convert_to_numpy(self.optimizer.iterations))

    @property
    def learning_rate(self) -> float:
        """The rate of the next update."""
        return float(self.schedule(self.step))

    def check_weights(self) -> None:
        """Checks what is about to be saved.

        Raises:
          NotFiniteError: if a weight is infinite or no number.
        """
        for weight in self.model.trainable_variables:
            if not ops.all(ops.isfinite(weight)):
                raise NotFiniteError(
                    f"step {self.step}: expected finite weights, found others in "
                    f"{weight.path}, at a learning rate of {self.learning_rate:g}"
                )

    def _not_finite(self, step: int, loss: float, norm: float) -> NotFiniteError:
        """The error of the update after `step` updates."""
        rate = float(self.schedule(step))
        return NotFiniteError(
            f"step {step + 1}: expected a finite loss and gradient, found a loss of "
            f"{loss:g} and a gradient of norm {norm:g}, at a learning rate of {rate:g}"
        )
