"""What trains and evaluates, by the backend of Keras."""

import logging
import os

import keras
import tensorflow as tf

from common.errors import UserError
from training.tensorflow import strategy as strategies
from training.tensorflow.strategy import make_strategy

BY_JAX = keras.backend.backend() == "jax"
if BY_JAX:
    import jax

    from training.jax.evaluator import Evaluator
    from training.jax.trainer import Trainer

    # TensorFlow, which reads the data, would take all the memory of a GPU.
    tf.config.set_visible_devices([], "GPU")
else:
    from training.tensorflow.evaluator import Evaluator
    from training.tensorflow.trainer import Trainer

__all__ = ["Evaluator", "Trainer"]
logger = logging.getLogger("transevolve")


def take_jax_device(
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


def describe(strategy: tf.distribute.Strategy) -> str:
    """The devices of a strategy in a few words, or that of JAX."""
    if BY_JAX:
        return f"1 {jax.devices()[0].device_kind}, by JAX"
    return strategies.describe(strategy)


def announce(strategy: tf.distribute.Strategy) -> None:
    """Logs the devices, and a warning where a better one is idle."""
    logger.info("on %s", describe(strategy))
    if not BY_JAX and (idle := strategies.warn_of_idle_gpu()):
        logger.warning(idle)


def one_device_trainer(
    build,
    task,
    settings,
    dataset,
    jit_compile=False,
    fillers=None,
):
    """A trainer of a new model on one device, and its iterator over a dataset.

    Args:
      build: function without arguments that makes the model.
      task, settings, jit_compile: as for `Trainer`.
      dataset: a `tf.data.Dataset` of batches.
      fillers: of the dataset's batches.
    """
    strategy = make_strategy("one_device")
    with strategy.scope():
        model = build()
    trainer = Trainer(model, task, settings, strategy, jit_compile)
    return trainer, trainer.iterate(dataset, fillers)
