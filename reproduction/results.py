"""What tables are filled with."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from configs.published import EXAMPLES, SYSTEMS
from data import DATASETS
from models import variants
from reproduction.experiment import Experiment
from reproduction.records import Record
from reproduction.scales import Scale

# Pairs that are too long are left out.
SHARE_OF_PAIRS = 0.95


class Results(NamedTuple):
    """What there is to fill a table with.

    Attributes:
      records: {name of the experiment: Record}, of those that have begun.
      missing: {task of an experiment: why it was not run}.
      folder: of pictures, and of what was measured.
    """

    records: dict[str, Record]
    missing: dict[str, str]
    folder: Path

    def finished(self, experiments: Iterable[Experiment]) -> list[Record]:
        """Those of the experiments that have been trained and evaluated."""
        return [
            self.records[experiment.name]
            for experiment in experiments
            if experiment.is_finished(self.records.get(experiment.name))
        ]

    def absences(self, tasks: dict[str, Experiment]) -> list[str]:
        """A sentence for each of the tasks of a table that could not be run."""
        return [
            f"{name} was not run: {self.missing[one.task]}."
            for name, one in tasks.items()
            if one.task in self.missing
        ]


def rows_of(scale: Scale) -> list[str]:
    """The paper's models, and others that run at a scale."""
    return list(dict.fromkeys([*variants(in_paper=True), *scale.variants]))


def systems_of(scale: Scale, published: Iterable[str]) -> list[str]:
    """The variants of a scale that are among other systems' published names."""
    names = [SYSTEMS[name] for name in published if name in SYSTEMS]
    return [variant for variant in names if variant in scale.systems]


def system(variant: str) -> str | None:
    """What the paper calls a variant that is another system, as "Performer"."""
    return next((name for name, ours in SYSTEMS.items() if ours == variant), None)


def is_whole(task: str, record: Record, split: str = "test") -> bool:
    """Whether a run had all the data that the paper has of a task.

    Args:
      task: of `EXAMPLES`.
      record: of a run of the task, evaluated.
      split: that it was evaluated on.
    """
    whole, data = EXAMPLES[task], record.config["data"]
    training = record.facts.get("training_examples") or 0
    # Validation data may be cut from the training examples.
    if "validation" not in DATASETS[data["dataset"]].SPLITS:
        training += data["validation_examples"]
    share = SHARE_OF_PAIRS if record.config["kind"] == "translation" else 1
    is_tested = record.results[split].get("examples") == whole[split]
    return is_tested and training >= share * whole["train"]
