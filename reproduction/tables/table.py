"""What a table is."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from configs.published import EXAMPLES, SYSTEMS
from data import DATASETS
from models import variants
from reproduction.experiment import Experiment, Setting
from reproduction.scales import Scale
from reproduction.sheet import Sheet
from reproduction.survey import Run

# Pairs that are too long are left out.
SHARE_OF_PAIRS = 0.95


class Results(NamedTuple):
    """What there is to fill a table with.

    Attributes:
      scale: at which it was run.
      runs: {name of the experiment: Run}, those that have begun.
      missing: {name of a setting: why it was not run}.
      speeds: rows of the speed benchmark, if they were measured.
      memory: rows of the memory benchmark, likewise.
      folder: for pictures.
      device: where speed was measured, as "1 CPU of ...", if it was.
    """

    scale: Scale
    runs: dict[str, Run]
    missing: dict[str, str]
    speeds: list[dict]
    memory: list[dict]
    folder: Path
    device: str | None = None

    def finished(self, experiments: list[Experiment]) -> list[Run]:
        """Those of the experiments that have been trained and evaluated."""
        return [
            self.runs[experiment.name]
            for experiment in experiments
            if experiment.is_finished(self.runs.get(experiment.name))
        ]

    def absences(self, tasks, settings: dict[str, Setting] | None = None) -> list[str]:
        """A sentence for each of the tasks that could not be run.

        Args:
          tasks: their names.
          settings: theirs, if not the scale's.
        """
        settings = settings or self.scale.settings
        return [
            f"{task} was not run: {self.missing[settings[task].name]}."
            for task in tasks
            if settings[task].name in self.missing
        ]


def rows_of(scale: Scale) -> list[str]:
    """The paper's models, and others that run at a scale."""
    return list(dict.fromkeys([*variants(in_paper=True), *scale.variants]))


def systems_of(scale: Scale, published: Iterable[str]) -> list[str]:
    """The variants of a scale that are among other systems' published names."""
    found = [SYSTEMS[name] for name in published if name in SYSTEMS]
    return [variant for variant in found if variant in scale.systems]


def system(variant: str) -> str | None:
    """What the paper calls a variant that is another system, as "Performer"."""
    return next((name for name, ours in SYSTEMS.items() if ours == variant), None)


def is_whole(task: str, run: Run, split: str = "test") -> bool:
    """Whether a run had all the data that the paper has of a task.

    Args:
      task: of `EXAMPLES`.
      run: of the task, evaluated.
      split: that it was evaluated on.
    """
    whole, dataset = EXAMPLES[task], DATASETS[run.config["data.dataset"]]
    training = run.facts.get("training_examples") or 0
    if "validation" not in dataset.SPLITS:  # it was cut from the training examples
        training += run.config["data.validation_examples"]
    share = SHARE_OF_PAIRS if run.config["kind"] == "translation" else 1
    is_tested = run.results[split].get("examples") == whole[split]
    return is_tested and training >= share * whole["train"]


class Table(NamedTuple):
    """A table of the paper, or of ours.

    Attributes:
      name: what `--table` calls it.
      experiments: function of a scale and a number of seeds, None for the scale's own;
        the runs that fill it.
      sheets: function of the same and of `Results`; it draws its pictures, too.
      is_timed: whether it wants the speed and memory benchmarks.
      is_of_all_models: whether it has all models of a scale, whichever were chosen to
        be run.
    """

    name: str
    experiments: Callable[[Scale, int | None], list[Experiment]]
    sheets: Callable[[Scale, int | None, Results], list[Sheet]]
    is_timed: bool = False
    is_of_all_models: bool = True
