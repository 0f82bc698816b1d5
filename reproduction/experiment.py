"""The runs of tables, as data: what is trained, on which data, how it is evaluated."""

import importlib
from pathlib import Path
from typing import NamedTuple

from ml_collections import ConfigDict

from common.errors import UserError
from evaluation.evaluate import result_name
from reproduction.differences import IMMATERIAL
from reproduction.records import Record
from tasks import TASKS
from training import workdir as workdirs


class Experiment(NamedTuple):
    """A run, or how a scale runs a task: then it lacks its variant.

    Attributes:
      task: names the folder of its runs.
      config: a file of `configs/`.
      preset: of the config.
      changes: {whole name of a field: value} beside the preset.
      folders: patterns of names in `--data_dir` under which its data may lie.
      needs_folder: whether it runs only on such data; otherwise the config's own
        source serves where there is none.
      splits: to evaluate when it has been trained.
      average_checkpoints: if above 0, the mean of so many is evaluated, too.
      test_at_validations: whether test data is evaluated at each validation, too.
      starts_from: the `task` of the run, of the same variant and seed, whose weights
        it starts from; "" for none.
      seeds: how many runs there are of each kind; 0 for the scale's number.
      variant: of the model.
      choice: names what the run changes beside, in its folder's name; "" if nothing.
      seed: of the run.
    """

    task: str
    config: str
    preset: str = "paper"
    changes: dict = {}
    folders: tuple[str, ...] = ()
    needs_folder: bool = False
    splits: tuple[str, ...] = ("test",)
    average_checkpoints: int = 0
    test_at_validations: bool = False
    starts_from: str = ""
    seeds: int = 0
    variant: str = ""
    choice: str = ""
    seed: int = 0

    def changed(self, changes: dict | None = None, **attributes) -> "Experiment":
        """Returns this experiment with more changes and other attributes."""
        changes = {**self.changes, **(changes or {})}
        return self._replace(changes=changes, **attributes)

    @property
    def name(self) -> str:
        """Path of its workdir below the folder of all runs."""
        parts = (self.task, self.variant, self.choice, f"seed-{self.seed}")
        return "/".join(filter(None, parts))

    @property
    def evaluations(self) -> list[tuple[str, int]]:
        """(split, averaged checkpoints) of each evaluation."""
        averages = dict.fromkeys((0, self.average_checkpoints))
        return [(split, average) for split in self.splits for average in averages]

    def make_config(self, data: dict) -> ConfigDict:
        """The config of the run.

        Args:
          data: {whole name: value} of fields that say where its data lies, and the run
            that it starts from.
        """
        module = importlib.import_module(f"configs.{self.config}")
        config = module.get_config(f"{self.variant},{self.preset}")
        config.update_from_flattened_dict({**self.changes, **data})
        config.seed = self.seed
        return config

    def is_finished(self, record: Record | None) -> bool:
        """Whether a run has been trained by `reproduction.running` with these settings,
        and has all their evaluations."""
        if record is None or record.failure or not record.facts.get("finished"):
            return False
        # With the source that it had: that data need not be here any more.
        fields = {"data.source": record.config["data"].get("source")}
        if self.starts_from:
            fields["train.init_from"] = record.config["train"].get("init_from")
        config = self.make_config(fields)
        if set(workdirs.differences(config, ConfigDict(record.config))) - IMMATERIAL:
            return False
        scores = TASKS[config.kind].score_names
        return all(
            _is_whole(
                record.results.get(result_name(split, average), {}), average, scores
            )
            for split, average in self.evaluations
        )


def _is_whole(result, average, scores):
    """Whether an evaluation has the figures that tables show."""
    parts = [result]
    if average:
        mean = result.get("mean_of_checkpoints", {})
        parts += [mean, *(result.get("checkpoints") or [{}])]
    figures = [part.get(name) for part in parts for name in scores]
    return None not in (result.get("parameters"), *figures)


class Folder:
    """Where the runs of a scale, their results and their data lie.

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

    def workdir(self, experiment: Experiment) -> Path:
        """The workdir of a run."""
        return self.runs / experiment.name

    def data(self, experiment: Experiment) -> dict | None:
        """{whole name: value} of the fields that say where a run's data lies, and the
        run that it starts from.

        None if it runs only on data that is not there.
        """
        fields = {"data.cache_dir": str(self.cache)}
        if experiment.starts_from:
            before = experiment._replace(task=experiment.starts_from, choice="")
            fields["train.init_from"] = str(self.workdir(before))
        folder = self._find(experiment.folders)
        if folder is not None:
            fields |= {"data.source": "files", "data.dir": str(folder)}
        elif experiment.needs_folder:
            return None
        vocabulary = self._find([self.VOCABULARY])
        module = importlib.import_module(f"configs.{experiment.config}")
        takes_vocabulary = module.get_config().data.tokenizer == "wordpiece"
        if vocabulary is not None and takes_vocabulary:
            fields["data.vocab_file"] = str(vocabulary)
        return fields

    def config(self, experiment: Experiment) -> ConfigDict:
        """The config of a run whose data is there."""
        return experiment.make_config(self.data(experiment))

    def _find(self, patterns):
        """The first pattern's first match."""
        if self._data_dir is None:
            return None
        matches = (sorted(self._data_dir.glob(pattern)) for pattern in patterns)
        return next((paths[0] for paths in matches if paths), None)
