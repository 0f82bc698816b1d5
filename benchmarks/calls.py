"""What is measured: a training step or a forward pass of a model on random tokens."""

import functools
import importlib.util
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from benchmarks import alone, authors, models
from benchmarks.traced_products import Product, products
from common.errors import UserError, check_known
from configs import char_imdb, multi30k
from models import (
    BASELINE,
    build_encoder_decoder,
    can_be_causal,
    can_decode,
    count_parameters,
    variant_config,
    variants,
)
from models.convert import fold_rotations
from tasks.classification import ClassificationTask
from tasks.translation import TranslationTask
from training.backends import BY_JAX, Trainer, one_device_trainer
from training.tensorflow.memory_prediction import predicted_bytes, shortage
from training.tensorflow.strategy import make_strategy

# By library, fields of `Setting` that its models do not have.
LACKED = {"torch": ("precision", "causal", "xla"), "tf_keras": ("precision", "causal")}


class Setting(NamedTuple):
    """How models are measured; a row has these fields, too.

    Attributes:
      mode: "train" (forward, backward, Adam) or "inference" (rotations folded).
      task: "classification" of bytes, or "translation" of subwords.
      size: a key of `models.SIZES`.
      precision: "float32" or "bfloat16" (float32 weights).
      causal: whether tokens of a classifier see none after them.
      xla: compile by XLA.
    """

    mode: str = "train"
    task: str = "classification"
    size: str = "small"
    precision: str = "float32"
    causal: bool = False
    xla: bool = False

    def row(self, benchmark: str, name: str, length: int, batch_size: int) -> dict:
        """How a row begins."""
        beginning = {"benchmark": benchmark, "model": name, **self._asdict()}
        return {**beginning, "length": length, "batch": batch_size}


@dataclass
class Prepared:
    """A model to measure.

    Attributes:
      call: makes one call.
      bytes: what the call takes of memory beside the weights, predicted; 0 if unknown.
      parameters: how many weights it has.
      products: matrix products of a step; none where no TensorFlow graph of it is here.
      close: ends what the calls need.
      not_run: why no more calls can be made.
      steps: updates or forward passes of a call.
    """

    call: Callable[[], None] | None = None
    bytes: int = 0
    parameters: int = 0
    products: Collection[Product] = ()
    close: Callable[[], None] = lambda: None
    not_run: str | None = None
    steps: int = 1

    def attempt(self) -> None:
        """Makes a call, if none has failed. `not_run` says why this one fails."""
        if self.not_run:
            return
        try:
            self.call()
        except tf.errors.ResourceExhaustedError:
            self.not_run = "memory ran out"
        except alone.ProcessEnded as error:
            self.not_run = str(error)
        if self.not_run:
            self.close()
            self.call = None  # the memory that it holds is for others


def check(names: list[str], setting: Setting, beside: Collection[str] = ()) -> None:
    """Checks that models are available here, and can do what is asked for.

    Args:
      names: of variants, or of `beside`.
      setting: what is asked for.
      beside: `models.PYTORCH`, and CHECKOUT:VARIANT, that may be measured, too.

    Raises:
      UserError: naming the first that is not.
    """
    decoding, causal = setting.task == "translation", setting.causal
    if decoding and causal:
        raise UserError("--causal: expected --task=classification, found translation")
    allowed = variants()
    if decoding or causal:
        can = can_decode if decoding else can_be_causal
        allowed = [name for name in allowed if can(variant_config(name))]
    check_known("models", names, [*allowed, *beside])
    for name in names:
        library, (folder, variant) = _library(name), models.split(name)
        for field in LACKED.get(library, ()):
            if getattr(setting, field) != getattr(Setting(), field):
                raise UserError(f"--{field}: {name} has no other than the default")
        if library and importlib.util.find_spec(library) is None:
            raise UserError(f"--models: {name}: expected {library} to be installed")
        if folder and library:
            theirs = [name for name in variants(in_paper=True) if name != BASELINE]
            check_known("models", [variant], theirs)
        elif folder and not Path(folder, "benchmarks", "calls.py").is_file():
            raise UserError(
                f"--models: {name}: expected a checkout of this repository, or a clone "
                f"of the authors', at {folder}"
            )


def _library(name):
    """The package that a model needs which is not of this repository's code."""
    if name == models.PYTORCH:
        return "torch"
    folder, _ = models.split(name)
    return "tf_keras" if folder and authors.is_clone(folder) else None


def prepare(name: str, setting: Setting, batch_size: int, length: int) -> Prepared:
    """Makes a new model, which has not been called.

    Where memory does not suffice, or a process of its own ends, `not_run` says so.
    """
    folder, variant = models.split(name)
    shape = batch_size, length
    start = functools.partial(alone.start, f"{name} at {length} tokens")
    if _library(name):
        config = {
            **models.model_config(variant, setting.size),
            **setting._asdict(),
            "vocabulary_size": models.VOCABULARY_SIZE,
            "num_classes": models.NUM_CLASSES,
            "num_subwords": models.NUM_SUBWORDS,
            "label_smoothing": multi30k.get_config().train.label_smoothing,
        }
        if folder:
            clone = str(Path(folder).resolve())
            answers = start("benchmarks.authors:calls", config, *shape, clone)
        else:
            answers = start("benchmarks.pytorch:calls", config, *shape)
        return _in_own_process(answers)
    if folder:
        # An earlier commit knows the fields that it has.
        defaults = Setting()._asdict().items()
        given = dict(setting._asdict().items() - defaults)
        arguments = ("__main__:model_calls", variant, given, *shape)
        return _in_own_process(start(*arguments, checkout=Path(folder)))
    make = _training if setting.mode == "train" else _inference
    call, steps, graph, model = make(name, setting, *shape)
    num_bytes = predicted_bytes(graph) if graph else 0
    # Certainly: where memory runs out, the system may end the process.
    if short := shortage(num_bytes, make_strategy("one_device"), certain=True):
        return Prepared(not_run=short)
    traced = products(graph) if graph else ()
    return Prepared(call, num_bytes, count_parameters(model), traced, steps=steps)


def _in_own_process(answers):
    try:
        parameters, steps = next(answers)
    except alone.ProcessEnded as error:
        return Prepared(not_run=str(error))
    call = functools.partial(next, answers)
    return Prepared(call, parameters=parameters, close=answers.close, steps=steps)


def make_trainer(
    name: str, setting: Setting, batch_size: int, length: int
) -> tuple[Trainer, Iterator]:
    """A trainer of a new model, and its batches."""
    batch = _start(setting, batch_size, length)
    if setting.task == "translation":
        config = multi30k.get_config()
        task = TranslationTask(config, tokenizer=None)
    else:
        config, task = char_imdb.get_config(), ClassificationTask
    return one_device_trainer(
        lambda: _build(name, setting, length),
        task,
        config.train,
        tf.data.Dataset.from_tensors(batch).repeat(),
        setting.xla,
    )


def _build(name, setting, length):
    if setting.task == "translation":
        config = models.model_config(name, setting.size)
        return build_encoder_decoder(config, models.NUM_SUBWORDS, max_length=length)
    return models.build(name, setting.size, setting.causal, length)


def _training(name, setting, batch_size, length):
    trainer, iterator = make_trainer(name, setting, batch_size, length)
    steps, graph = trainer.steps_per_loop, None
    if not BY_JAX:
        steps = 1
        graph = trainer.update_graph(iterator.element_spec, (batch_size, length))
    return lambda: trainer.train(iterator, steps), steps, graph, trainer.model


def _inference(name, setting, batch_size, length):
    inputs = list(_start(setting, batch_size, length).values())
    model = _build(name, setting, length)
    if setting.task == "classification":
        del inputs[1:]
    folded = fold_rotations(model)
    if BY_JAX:
        return _forward_by_jax(folded, inputs), 1, None, model
    inputs = [tf.constant(x) for x in inputs]
    forward = tf.function(
        lambda *inputs: folded(*inputs, training=False),
        jit_compile=setting.xla,
    )
    graph = forward.get_concrete_function(*inputs).graph
    return lambda: forward(*inputs).numpy(), 1, graph, model


def _forward_by_jax(model, inputs):
    import jax

    forward = jax.jit(functools.partial(model.stateless_call, training=False))
    # Weights are arguments: as constants they would be compiled, too.
    weights = [
        [variable.value for variable in variables]
        for variables in (model.trainable_variables, model.non_trainable_variables)
    ]
    given = jax.device_put([*weights, *inputs])

    def call():
        logits, _ = forward(*given)
        return np.asarray(logits)

    return call


def _start(setting, batch_size, length):
    """Sets TensorFlow as in training; returns a batch."""
    if not BY_JAX:
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
