"""The device that JAX trains on."""

import logging
import os

import jax
import tensorflow as tf

from common.errors import UserError

logger = logging.getLogger("transevolve")


def take_device(
    strategy: tf.distribute.Strategy, profile: str | None, is_deterministic: bool
) -> None:
    """Logs the device. To be called before anything else asks JAX for it.

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
    logger.info("on 1 %s, by JAX", jax.devices()[0].device_kind)
