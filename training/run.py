"""A trained run, opened: its model answers."""

from collections.abc import Callable, Mapping

import tensorflow as tf

from common.errors import UserError
from common.paths import make_path
from training import config as configuration
from training import workdir as workdirs
from training.checkpoints import Checkpoints
from training.strategy import make_strategy
from training.tasks import TASKS


class Run:
    """What a workdir holds, restored.

    Attributes:
      config: of the run.
      task: a `training.tasks.task.Task`.
      tokenizer: of the task.
      model: with the restored weights.
      checkpoints: to restore others.
      strategy: that the model was made under.
    """

    def __init__(self, config, task, model, checkpoints, strategy):
        self.config = config
        self.task = task
        self.tokenizer = task.tokenizer
        self.model = model
        self.checkpoints = checkpoints
        self.strategy = strategy
        self._predictors = {}

    def predict(
        self,
        texts: list[str],
        batch_size: int | None = None,
        on_progress: Callable = lambda num_texts: None,
    ) -> list:
        """The model's answer to each text.

        Args:
          texts: any number of them.
          batch_size: how many at a time; None for the task's own.
          on_progress: called with a number of texts just done.

        Returns:
          `Classified` (label, scores) of a classifier, `Translation` (text, score) of a
          translator.
        """
        if batch_size not in self._predictors:
            self._predictors[batch_size] = self.task.predictor(self.model, batch_size)
        return self._predictors[batch_size](list(texts), on_progress)


def load_run(
    workdir,
    average_checkpoints: int = 0,
    decode: Mapping | None = None,
    strategy: tf.distribute.Strategy | None = None,
) -> Run:
    """Opens the run in a workdir.

    Args:
      workdir: of `train.py`.
      average_checkpoints: if above 0, the mean of the weights of so many last
        checkpoints instead of the best one.
      decode: fields of the config's `decode` part to use instead of the run's.
      strategy: to evaluate under; None for one device, which `predict` wants.

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
    if decode:
        if "decode" not in config:
            raise UserError(
                f"--{next(iter(decode))}: expected a run that decodes, found "
                f"{config.task}"
            )
        config.decode.update(decode)
        configuration.check(config)
    task = TASKS[config.kind](config, tokenizer)
    strategy = strategy or make_strategy("one_device")
    with strategy.scope():
        model = task.build_model()
    checkpoints = Checkpoints(workdir, model)
    if average_checkpoints:
        checkpoints.restore_average(average_checkpoints)
    else:
        checkpoints.restore_best()
    return Run(config, task, model, checkpoints, strategy)
