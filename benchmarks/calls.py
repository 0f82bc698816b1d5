"""What is measured: a training step or a forward pass of a model on random tokens."""

import functools
from collections.abc import Callable, Collection, Iterator
from types import SimpleNamespace
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from benchmarks import checkout, models, pytorch
from common.errors import UserError
from configs import char_imdb, multi30k
from models import count_parameters
from models.convert import fold_rotations
from models.products import Product
from tasks import translation
from tasks.classification import ClassificationTask
from tasks.task import Task
from training.tensorflow.memory_prediction import predicted_bytes
from training.tensorflow.trainer import Trainer, one_device_trainer


class Setting(NamedTuple):
    """How models are measured.

    Attributes:
      size: a key of `models.SIZES`.
      precision: "float32" or "bfloat16" (float32 weights).
      mode: "train" (forward, backward, Adam) or "inference" (rotations folded).
      task: "classification" of bytes, or "translation" of subwords.
      causal: whether tokens of a classifier see none after them.
      jit_compile: compile by XLA.
    """

    size: str = "small"
    precision: str = "float32"
    mode: str = "train"
    task: str = "classification"
    causal: bool = False
    jit_compile: bool = False

    def row(self) -> dict:
        """What a row says of it."""
        return {
            "mode": self.mode,
            "task": self.task,
            "size": self.size,
            "precision": self.precision,
            "causal": self.causal,
            "xla": self.jit_compile,
        }

    def given(self) -> dict:
        """The fields that differ from their defaults."""
        return dict(self._asdict().items() - Setting()._asdict().items())


class Prepared(NamedTuple):
    """A model to measure.

    Attributes:
      call: makes one call.
      bytes: what the call takes of memory beside the weights, predicted; 0 if unknown.
      parameters: that count.
      products: matrix products of a training step; none where the model states none.
      close: ends what the calls need.
    """

    call: Callable[[], None]
    bytes: int
    parameters: int
    products: list[Product]
    close: Callable[[], None] = lambda: None


def check(names: list[str], setting: Setting, peers: Collection[str] = ()) -> None:
    """Raises UserError if a model cannot be had, or does not do what is asked for.

    Args:
      names: of variants, or of `peers`.
    """
    decoding = setting.task == "translation"
    if decoding and setting.causal:
        raise UserError("--causal: expected --task=classification, found translation")
    models.check(names, decoding, setting.causal, peers)


def prepare(name: str, setting: Setting, batch_size: int, length: int) -> Prepared:
    """Makes a new model, which has not been called."""
    peer = _peer(name, setting, batch_size, length)
    if peer:
        return Prepared(peer.call, 0, peer.parameters, [], peer.close)
    make = _training if setting.mode == "train" else _inference
    call, wanted, model = make(name, setting, batch_size, length)
    products = models.products(model, batch_size, length)
    return Prepared(call, wanted, count_parameters(model), products)


def _peer(name, setting, batch_size, length):
    """What runs in a process of its own; None for a model of this one."""
    folder, variant = checkout.split(name)
    if folder:
        return checkout.start(folder, variant, setting.given(), batch_size, length)
    if name == models.PYTORCH:
        config = {
            **models.model_config(name, setting.size),
            **setting._asdict(),
            "vocabulary_size": models.VOCABULARY_SIZE,
            "num_classes": models.NUM_CLASSES,
            "num_subwords": models.NUM_SUBWORDS,
        }
        return pytorch.start(config, batch_size, length)
    return None


def make_trainer(
    name: str, setting: Setting, batch_size: int, length: int
) -> tuple[Trainer, Iterator]:
    """A trainer of a new model, and its batches."""
    batch = _start(setting, batch_size, length)
    if setting.task == "translation":
        settings = multi30k.get_config().train
        smoothing = settings.label_smoothing
        task = SimpleNamespace(
            losses=functools.partial(translation.losses, label_smoothing=smoothing),
            initial_state=Task.initial_state,
        )
    else:
        settings, task = char_imdb.get_config().train, ClassificationTask
    return one_device_trainer(
        lambda: _build(name, setting),
        task,
        settings,
        tf.data.Dataset.from_tensors(batch).repeat(),
        setting.jit_compile,
    )


def _build(name, setting):
    if setting.task == "translation":
        return models.build_translator(name, setting.size)
    return models.build(name, setting.size, setting.causal)


def _training(name, setting, batch_size, length):
    trainer, iterator = make_trainer(name, setting, batch_size, length)
    wanted = trainer.update_bytes(iterator.element_spec, (batch_size, length))
    return lambda: trainer.train(iterator, 1), wanted, trainer.model


def _inference(name, setting, batch_size, length):
    inputs = list(_start(setting, batch_size, length).values())
    model = _build(name, setting)
    if setting.task == "classification":
        del inputs[1:]
    inputs = [tf.constant(x) for x in inputs]
    folded = fold_rotations(model)
    forward = tf.function(
        lambda *inputs: folded(*inputs, training=False),
        jit_compile=setting.jit_compile,
    )
    wanted = predicted_bytes(forward.get_concrete_function(*inputs).graph)
    return lambda: forward(*inputs).numpy(), wanted, model


def _start(setting, batch_size, length):
    """Sets TensorFlow as in training; returns a batch."""
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(0)
    precision = setting.precision
    policy = precision if precision == "float32" else f"mixed_{precision}"
    keras.config.set_dtype_policy(policy)
    rng = np.random.default_rng(0)
    shape = batch_size, length
    if setting.task == "translation":
        sides = rng.integers(4, models.NUM_SUBWORDS, (2, *shape)).astype("int32")
        return {"inputs": sides[0], "targets": sides[1]}
    tokens = rng.integers(1, models.VOCABULARY_SIZE, shape).astype("int32")
    return {"inputs": tokens, "targets": np.zeros(batch_size, "int32")}
