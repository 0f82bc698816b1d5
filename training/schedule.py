"""Adam and its learning rate: the paper's (section 7.3), and a cosine."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable("transevolve")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """lr = lr_max / sqrt(d) * min(step^-0.5, step * warmup^-1.5), steps from 1.

    The paper prints max(); a schedule that warms up and decays needs min(), and the
    authors' code has it.

    Args:
      learning_rate_max: lr_max, 0.5 or 1.5 in the paper. The highest rate reached is
        lr_max / sqrt(d * warmup_steps).
      hidden_dim: d.
      warmup_steps: steps of linear growth.
    """

    def __init__(self, learning_rate_max, hidden_dim, warmup_steps):
        self.learning_rate_max = learning_rate_max
        self.hidden_dim = hidden_dim
        self.warmup_steps = warmup_steps

    def __call__(self, iterations):
        """The rate of the update after `iterations` updates."""
        step = ops.cast(iterations, "float32") + 1
        factor = ops.minimum(step**-0.5, step * self.warmup_steps**-1.5)
        return self.learning_rate_max * self.hidden_dim**-0.5 * factor

    def get_config(self):
        return {
            "learning_rate_max": self.learning_rate_max,
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
        }


@keras.saving.register_keras_serializable("transevolve")
class CosineSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that grows linearly to its highest value, then falls to 0 as a cosine does
    (Loshchilov and Hutter 2017), as language models are often trained.

    Args:
      learning_rate_max: the highest rate.
      warmup_steps: steps of linear growth.
      steps: of the whole run.
    """

    def __init__(self, learning_rate_max, warmup_steps, steps):
        self.learning_rate_max = learning_rate_max
        self.warmup_steps = warmup_steps
        self.steps = steps

    def __call__(self, iterations):
        """The rate of the update after `iterations` updates."""
        step = ops.cast(iterations, "float32") + 1
        left = max(self.steps - self.warmup_steps, 1)
        share = ops.clip((step - self.warmup_steps) / left, 0.0, 1.0)
        falling = (1 + ops.cos(math.pi * share)) / 2
        return self.learning_rate_max * ops.minimum(step / self.warmup_steps, falling)

    def get_config(self):
        return {
            "learning_rate_max": self.learning_rate_max,
            "warmup_steps": self.warmup_steps,
            "steps": self.steps,
        }


def make_schedule(settings, hidden_dim: int):
    """The schedule that the `train` part of a config asks for."""
    # Older runs have no such field.
    if getattr(settings, "schedule", None) == "cosine":
        return CosineSchedule(
            settings.learning_rate_max, settings.warmup_steps, settings.steps
        )
    return WarmupSchedule(settings.learning_rate_max, hidden_dim, settings.warmup_steps)


def adam_arguments(settings) -> dict:
    """Arguments of Adam beside the rate, of the `train` part of a config."""
    return {
        "beta_1": settings.adam_beta_1,
        "beta_2": settings.adam_beta_2,
        "epsilon": settings.adam_epsilon,
        "name": "adam",  # checkpoints name variables by it
    }
