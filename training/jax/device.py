"""The device that JAX trains on."""

import os

import tensorflow as tf

from common.errors import UserError


def take_device(
    strategy: tf.distribute.Strategy, profile: str | None, is_deterministic: bool
) -> None:
    """Checks what is asked for. To be called before anything asks JAX for its device.

    Args:
      strategy: as it was asked for.
      profile: steps, where some were asked for.
      is_deterministic: whether a GPU is to add up in one order.

    Raises:
      UserError: if several devices or a profile were asked for.
    """
    if not isinstance(strategy, tf.distribute.OneDeviceStrategy):
        raise UserError("--strategy: expected auto or one_device where JAX trains")
    if profile is not None:
        raise UserError("--profile: expected TensorFlow to train, found JAX")
    if is_deterministic:
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true"
