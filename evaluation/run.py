"""A trained run, opened: its model answers."""

from common import backend  # first: TensorFlow imports Keras

# isort: split
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import keras
import tensorflow as tf
from ml_collections import ConfigDict

from common.errors import UserError
from common.fields import fail
from common.paths import make_path
from export.text_model import TextModel, list_of_texts
from models import attention_kind, in_form, variant_config
from models.convert import fold_rotations
from tasks import TASKS
from tasks.task import Task
from training import config as configuration
from training import workdir as workdirs
from training.tensorflow.checkpoints import Checkpoints, OtherModelError
from training.tensorflow.strategy import make_strategy

# Fields of `decode` by which texts may be longer than those that they go on from.
LENGTHENING = {"continuation_length", "extra_length"}


@dataclass
class Run:
    """What a workdir holds, restored.

    Attributes:
      workdir: where it lies.
      config: of the run.
      task: a `tasks.task.Task`.
      model: with the restored weights.
      checkpoints: to restore others, before the first text is answered.
      strategy: that the model was made under.
    """

    workdir: Path
    config: ConfigDict
    task: Task
    model: keras.Model
    checkpoints: Checkpoints
    strategy: tf.distribute.Strategy

    @property
    def tokenizer(self):
        """That of the task."""
        return self.task.tokenizer

    @cached_property
    def text_model(self) -> TextModel:
        """What answers texts: what an export holds.

        Raises:
          UserError: if Keras has another backend than TensorFlow.
        """
        backend.expect_tensorflow("answers to texts")
        return self.task.text_model(fold_rotations(self.model))

    def check_data(self, split: str) -> None:
        """Checks that the data of a split is what the run began with.

        Validation data may be cut from training data: of other training data, it could
        be what the run has trained on.

        Args:
          split: "validation" or "test", whose data no run keeps a fingerprint of.

        Raises:
          UserError: if it is not; a `DataError` if it cannot be had or read.
        """
        if split in workdirs.read_data(self.workdir):
            otherwise = (
                "give the data that it was trained with, by --data_dir where that lies "
                "elsewhere now"
            )
            batches = {split: self.task.evaluation_batches(split)}
            workdirs.check_same_data(batches, self.workdir, otherwise)

    def predict(self, texts: Iterable[str | bytes]) -> list:
        """The model's answer to each text.

        Args:
          texts: any number of them, in a list, an array, or what gives them one by one.

        Returns:
          `Classified` (label, scores, truncated, error) of a classifier, `Translation`
          (text, score, truncated) of a translator, `Continuation` (text, truncated) of
          a language model. A text that is no input of the model has an `error` and no
          label; the others are answered.

        Raises:
          UserError: for a single text, or what is no text.
        """
        texts = list_of_texts(texts)
        model = self.text_model
        rows = model.outputs("serving_default", texts)
        return [model.answer(outputs) for outputs in rows]


def load_run(
    workdir,
    average_checkpoints: int = 0,
    decode: Mapping | None = None,
    attention: str | None = None,
    strategy: tf.distribute.Strategy | None = None,
    data_dir: str | None = None,
) -> Run:
    """Opens the run in a workdir.

    Args:
      workdir: of `train.py`.
      average_checkpoints: if above 0, the mean of the weights of so many last
        checkpoints instead of the best one.
      decode: fields of the config's `decode` part to use instead of the run's.
      attention: the form of attention to have, as in "linear-favor", instead of the
        run's; see `models.in_form`. The weights stay as they are, and none but inert
        ones may go unused. In the form that it has the run keeps its own fields.
      strategy: to evaluate under; None for one device, which `predict` needs.
      data_dir: where the run's data lies now, instead of the config's `data.dir`.

    Raises:
      UserError: for a workdir without a run or without checkpoints, or settings that
        its task does not have.
    """
    workdir = make_path(workdir, "--workdir")
    config, tokenizer = workdirs.read(workdir)
    try:
        configuration.check(config)
    except UserError as error:
        raise UserError(f"{workdir}: a run of other code: {error}") from None
    if decode and "decode" not in config:
        raise UserError(
            f"--{next(iter(decode))}: expected a run that decodes, found {config.task}"
        )
    unused = ()
    if attention:
        kind = attention_kind(config.model)
        unused = kind.inert_weights if kind else ()
        _take_form(config, attention)
    if data_dir is not None:
        config.data.dir = data_dir
    configuration.check(config)
    task = TASKS[config.kind](config, tokenizer)
    strategy = strategy or make_strategy("one_device")
    with strategy.scope():
        model = task.build_model()
    if decode:  # weights by position are for the run's own lengths
        trained = config.decode.to_dict()
        config.decode.update(decode)
        configuration.check(config)
        _check_lengths(config, trained)
    checkpoints = Checkpoints(workdir, model, unused=unused)
    try:
        if average_checkpoints:
            checkpoints.restore_average(average_checkpoints)
        else:
            checkpoints.restore_best()
    except OtherModelError as error:
        if not attention:
            raise
        raise UserError(
            f"--attention={attention}: expected a form with the weights that the run "
            f"has, found a difference in {error.weights}"
        ) from None
    return Run(workdir, config, task, model, checkpoints, strategy)


def _check_lengths(config, trained):
    """Raises `UserError` if what is decoded may have positions without weights.

    Args:
      trained: the `decode` part with which the model was made.
    """
    if not attention_kind(config.model).has_weights_by_position:
        return
    for name in LENGTHENING & trained.keys():
        if config.decode[name] > trained[name]:
            expected = f"at most {trained[name]}, as in training, with the attention "
            expected += config.model.attention.name
            fail(f"decode.{name}", expected, config.decode[name])


def _take_form(config, attention):
    try:
        variant = in_form(config.variant, attention)
    except ValueError as error:
        raise UserError(f"--attention: {error}") from None
    if variant == config.variant:
        return  # whose fields may not be those of the variant
    config.variant = variant
    with config.unlocked():
        config.model.attention = variant_config(variant)["attention"]
