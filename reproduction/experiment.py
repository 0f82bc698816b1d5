"""A run of a table, as data: what is trained, and how it is evaluated."""

import importlib
import json
from pathlib import Path
from typing import NamedTuple

from ml_collections import ConfigDict

from common.errors import UserError
from evaluation.evaluate import result_name
from reproduction.survey import Run
from tasks import TASKS
from training.config import flatten

# Fields that say where data lies.
PLACES = {"data.source", "data.dir", "data.cache_dir", "data.vocab_file"}


class Setting(NamedTuple):
    """How a task is run at a scale.

    Attributes:
      name: of its runs' folder.
      config: a file of `configs/`.
      preset: of the config.
      overrides: {whole name of a field: value} beside the preset.
      folders: patterns of names in `--data_dir` under which its data may lie.
      needs_folder: whether it runs only on such data; otherwise the config's own
        source serves where there is none.
      splits: to evaluate when it has been trained.
      average_checkpoints: if above 0, the mean of so many is evaluated, too.
      test_at_validations: whether test data is evaluated at each validation, too.
    """

    name: str
    config: str
    preset: str = "paper"
    overrides: dict = {}
    folders: tuple[str, ...] = ()
    needs_folder: bool = False
    splits: tuple[str, ...] = ("test",)
    average_checkpoints: int = 0
    test_at_validations: bool = False

    @property
    def evaluations(self) -> list[tuple[str, int]]:
        """(split, averaged checkpoints) of each evaluation."""
        averages = dict.fromkeys((0, self.average_checkpoints))
        return [(split, average) for split in self.splits for average in averages]


class Experiment(NamedTuple):
    """One run.

    Attributes:
      setting: of its task.
      variant: of the model.
      seed: of the run.
      choice: names what it changes beside, in its folder's name; "" if nothing.
      changes: {whole name of a field: value}, what the choice stands for.
    """

    setting: Setting
    variant: str
    seed: int = 0
    choice: str = ""
    changes: dict = {}

    @property
    def name(self) -> str:
        """Path of its workdir below the folder of all runs."""
        parts = (self.setting.name, self.variant, self.choice, f"seed-{self.seed}")
        return "/".join(part for part in parts if part)

    def config(self, data: dict) -> ConfigDict:
        """The config of the run.

        Args:
          data: {whole name: value} of fields that say where its data lies.
        """
        module = importlib.import_module(f"configs.{self.setting.config}")
        config = module.get_config(f"{self.variant},{self.setting.preset}")
        config.update_from_flattened_dict(
            {**self.setting.overrides, **self.changes, **data}
        )
        config.seed = self.seed
        return config

    def is_finished(self, run: Run | None) -> bool:
        """Whether a run has been trained by `reproduction.running` with these settings,
        and has all their evaluations."""
        if run is None or run.failure or not run.facts.get("finished"):
            return False
        own = flatten(json.loads(json.dumps(self.config({}).to_dict())))
        names = (own.keys() | run.config.keys()) - PLACES
        if any(own.get(name) != run.config.get(name) for name in names):
            return False
        scores = TASKS[run.config["kind"]].score_names
        return all(
            _is_whole(run.results.get(result_name(split, average), {}), average, scores)
            for split, average in self.setting.evaluations
        )


def _is_whole(result, average, scores):
    """Whether an evaluation has the figures that tables show."""
    parts = [result]
    if average:
        mean = result.get("mean_of_checkpoints", {})
        parts += [mean, *(result.get("checkpoints") or [{}])]
    figures = [part.get(name) for part in parts for name in scores]
    return None not in (result.get("parameters"), *figures)


class Places:
    """Where data and runs lie.

    Args:
      output: folder of everything that is written.
      scale: name of the scale, whose runs are apart from others'.
      data_dir: folder with the data as its authors ship it, or None.
    """

    VOCABULARY = "bert_base_uncased_vocab.txt"

    def __init__(self, output: Path, scale: str, data_dir: Path | None = None):
        if data_dir is not None and not data_dir.is_dir():
            raise UserError(f"--data_dir={data_dir}: expected a folder, found none")
        self.runs = output / "runs" / scale
        self.results = output / "results" / scale
        self.cache = output / "cache"
        self._data_dir = data_dir

    def data(self, setting: Setting) -> dict | None:
        """{whole name: value} of the fields that say where a task's data lies.

        Those are of `PLACES`. None if the task runs only on data that is not there.
        """
        fields = {"data.cache_dir": str(self.cache)}
        folder = self._find(setting.folders)
        if folder is not None:
            fields |= {"data.source": "files", "data.dir": str(folder)}
        elif setting.needs_folder:
            return None
        vocabulary = self._find([self.VOCABULARY])
        if vocabulary is not None and _takes_vocabulary(setting):
            fields["data.vocab_file"] = str(vocabulary)
        return fields

    def _find(self, patterns):
        """The first pattern's first match."""
        if self._data_dir is None:
            return None
        found = (sorted(self._data_dir.glob(pattern)) for pattern in patterns)
        return next((paths[0] for paths in found if paths), None)


def _takes_vocabulary(setting):
    module = importlib.import_module(f"configs.{setting.config}")
    return module.get_config().data.tokenizer == "wordpiece"
