"""What is measured: a training step or a forward pass of a model on random tokens."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from benchmarks import models
from configs import char_imdb
from models.convert import fold_rotations
from models.products import Product
from training.memory import predicted_bytes
from training.tasks.classification import ClassificationTask
from training.trainer import Trainer, one_device_trainer


class Setting(NamedTuple):
    """How models are measured.

    Attributes:
      size: a key of `models.SIZES`.
      precision: "float32" or "bfloat16" (float32 weights).
      mode: "train" (forward, backward, Adam) or "inference" (rotations folded).
      causal: whether tokens see none after them.
      jit_compile: compile by XLA.
    """

    size: str = "small"
    precision: str = "float32"
    mode: str = "train"
    causal: bool = False
    jit_compile: bool = False

    def row(self) -> dict:
        """What a row says of it."""
        return {
            "mode": self.mode,
            "task": "char_imdb",
            "size": self.size,
            "precision": self.precision,
            "causal": self.causal,
            "xla": self.jit_compile,
        }


class Prepared(NamedTuple):
    """A model to measure.

    Attributes:
      call: makes one call.
      bytes: what the call takes of memory beside the weights, predicted.
      parameters: that count.
      products: matrix products of a training step; none where the model states none.
    """

    call: Callable[[], None]
    bytes: int
    parameters: int
    products: list[Product]


def prepare(name: str, setting: Setting, batch_size: int, length: int) -> Prepared:
    """Makes a new model, which has not been called."""
    make = _training if setting.mode == "train" else _inference
    call, wanted, model = make(name, setting, batch_size, length)
    products = models.products(model, batch_size, length)
    return Prepared(call, wanted, model.count_params(), products)


def make_trainer(
    name: str, setting: Setting, batch_size: int, length: int
) -> tuple[Trainer, Iterator]:
    """A trainer of a new model, and its batches."""
    tokens = _start(setting, batch_size, length)
    batch = {"inputs": tokens, "targets": np.zeros(batch_size, "int32")}
    return one_device_trainer(
        lambda: models.build(name, setting.size, setting.causal),
        ClassificationTask.losses,
        char_imdb.get_config().train,
        tf.data.Dataset.from_tensors(batch).repeat(),
        setting.jit_compile,
    )


def _training(name, setting, batch_size, length):
    trainer, iterator = make_trainer(name, setting, batch_size, length)
    wanted = trainer.update_bytes(iterator.element_spec, (batch_size, length))
    return lambda: trainer.train(iterator, 1), wanted, trainer.model


def _inference(name, setting, batch_size, length):
    tokens = tf.constant(_start(setting, batch_size, length))
    model = models.build(name, setting.size, setting.causal)
    folded = fold_rotations(model)
    forward = tf.function(
        lambda tokens: folded(tokens, training=False),
        jit_compile=setting.jit_compile,
    )
    wanted = predicted_bytes(forward.get_concrete_function(tokens).graph)
    return lambda: forward(tokens).numpy(), wanted, model


def _start(setting, batch_size, length):
    """Sets TensorFlow as in training; returns tokens."""
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(0)
    precision = setting.precision
    policy = precision if precision == "float32" else f"mixed_{precision}"
    keras.config.set_dtype_policy(policy)
    tokens = np.random.default_rng(0).integers(1, 257, (batch_size, length))
    return tokens.astype("int32")
