"""What a task is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from common.fields import Field
from export.text_model import TextModel
from training.backends import Evaluator
from training.losses import masked_sums
from training.metrics import Totals


class Table(NamedTuple):
    """A table of results.

    Attributes:
      header: names of the columns.
      rows: cells, as many as columns in each.
      left: how many columns are text; the rest are numbers.
    """

    header: list[str]
    rows: list[list]
    left: int = 1


class Evaluation(NamedTuple):
    """What evaluating found.

    Attributes:
      scores: by name, JSON-serialisable; `examples` among them.
      tables: for people.
      samples: for people, some examples as {what: text}.
      answers: the model's answer to each example, a line each; None where they say
        nothing that the scores do not.
    """

    scores: dict
    tables: list[Table] = []
    samples: list[dict[str, str]] = []
    answers: list[str] | None = None


class Task(ABC):
    """Tokenizer, data, model, losses and answers of one kind of learning.

    Batches are as `data` describes them: the training loop, evaluation and benchmarks
    ask for nothing else, and for no task by name.

    Class attributes:
      reads: the kind of dataset, as `data` has them.
      unit: what there is a loss for, in the plural, e.g. "tokens".
      texts: entries of a batch that are token ids of texts of their own.
      metric: which of `Totals.metrics` picks the best checkpoint.
      higher_is_better: the direction.
      score_names: which of the scores of its evaluation say how good a model is.
      fields: {whole name: `common.fields.Field`} of the config, the task's own.

    Args:
      config: as from a file in `configs/`.
      tokenizer: from `data.tokenizers.make_tokenizer`, or as saved by an earlier run.
    """

    reads: str
    unit = "examples"
    texts = ("inputs",)
    metric = "loss"
    higher_is_better = False
    score_names = ("loss", "accuracy")
    fields: Mapping[str, Field] = {}

    def __init__(self, config, tokenizer):
        self.config = config
        self.tokenizer = tokenizer

    @property
    def evaluation_batch_size(self) -> int:
        """Of the batches to evaluate on: a whole batch of microbatches may not fit."""
        settings = self.config.train
        return -(-settings.batch_size // settings.accumulate_steps)

    @staticmethod
    def check(config) -> None:
        """Raises `UserError` if fields of the config do not fit together."""
        return None

    @staticmethod
    def shapes(config) -> list[tuple[int, int | None]]:
        """(rows, length) of the training batches; None where lengths are free."""
        return [(config.train.batch_size, None)]

    @abstractmethod
    def build_model(self):
        """A new model, with its weights. Its `hidden_dim` scales the learning rate."""

    @abstractmethod
    def training_batches(self):
        """Batches of the training split."""

    @abstractmethod
    def evaluation_batches(self, split: str):
        """Batches of "validation" or "test"."""

    @staticmethod
    def initial_state(batch_size: int, training: bool):
        """What a first batch starts from; most tasks carry nothing.

        A task whose batches are segments that go on from one another, row by row,
        carries a state from each to the next. It then deals batches of one number of
        rows. Training keeps the state in checkpoints. Each evaluation of a split starts
        anew, and so does whatever answers texts.

        Args:
          batch_size: rows of a batch, or of a device's part of it.
          training: whether the batches are those of training.

        Returns:
          Tensors of `batch_size` rows, in a structure of tuples, lists and dicts.
        """
        return ()

    @abstractmethod
    def losses(self, model, batch, state, training: bool):
        """A batch's losses, computed by `keras.ops`.

        Args:
          model: of the task.
          batch: as `data` describes it.
          state: from `initial_state`, or that after the batch before.
          training: whether dropout is on.

        Returns:
          Loss of each target, whether the model's first choice is right, and whether
          there is a target, of one shape; then the state after the batch.
        """

    def sums(self, model, batch, state) -> tuple:
        """Tensors that are added up over the batches of a split, and the next state."""
        *losses, state = self.losses(model, batch, state, training=False)
        return masked_sums(*losses), state

    def totals(self, sums) -> Totals:
        """The `Totals` of those sums, NumPy values."""
        return Totals(*map(float, sums))

    @abstractmethod
    def evaluate(
        self, model, split: str, strategy, each_checkpoint: Iterable[Callable] = ()
    ) -> Evaluation:
        """Evaluates a split.

        Args:
          model: with the weights to evaluate.
          split: "validation" or "test".
          strategy: where to run.
          each_checkpoint: functions that each give the model other weights, for a task
            that reports the mean of their scores too.
        """

    def evaluation_sample(self, model, split: str, strategy) -> tuple[Callable, float]:
        """A part of what `evaluate` does, to be timed.

        Returns:
          A function that does it, and how many times as long the whole takes.
        """
        evaluator = Evaluator(model, self, strategy)
        return evaluator.sample(self.evaluation_batches(split))

    @abstractmethod
    def text_model(self, model, dtype: str = "float32") -> TextModel:
        """What answers texts, in Python and exported.

        Args:
          model: trained, its rotations folded.
          dtype: of the weights that it stores.
        """

    @property
    def prompt(self) -> str:
        """What a line is answered with, for a person who types."""
        return self.config.task
