"""What tables are filled with."""

from collections.abc import Iterable
from typing import NamedTuple

from configs.published import EXAMPLES, SYSTEMS
from data import DATASETS
from models import variants
from reproduction.experiment import Experiment, Folder
from reproduction.records import FINISHED, Record
from reproduction.scales import Scale

# Pairs that are too long are left out.
SHARE_OF_PAIRS = 0.95


class Results(NamedTuple):
    """What there is to fill a table with.

    Attributes:
      records: {name of the experiment: Record}, of those that have begun.
      folder: where they lie, and where pictures are drawn.
      damaged: {name: why} of the runs that are left out for damage.
    """

    records: dict[str, Record]
    folder: Folder
    damaged: dict[str, str] = {}

    def finished(self, experiments: Iterable[Experiment]) -> list[Record]:
        """Those of the experiments that have been trained and evaluated."""
        return [
            self.records[one.name]
            for one in experiments
            if one.is_finished(self.records.get(one.name))
        ]

    def tests(self, experiments: Iterable[Experiment]) -> dict[int, dict]:
        """{seed: result on test data} of those of the experiments that have ended."""
        return {one.seed: one.results["test"] for one in self.finished(experiments)}

    def absences(self, tasks: dict[str, Experiment]) -> list[str]:
        """A sentence for each of the tasks of a table that could not be run."""
        # What was run before is there, whatever became of its data.
        finished = [x.name for x in self.records.values() if x.state == FINISHED]
        run = {name.split("/")[0] for name in finished}
        return [
            f"{name} was not run: --data_dir has no {' or '.join(one.folders)}."
            for name, one in tasks.items()
            if one.task not in run and self.folder.data(one) is None
        ]


def models_of(scale: Scale, published: Iterable[str] = ()) -> list[str]:
    """The variants that have rows in a table: the paper's, others that run at a scale,
    and other systems.

    Args:
      scale: of the table.
      published: the other systems that the table of the paper has. Beside them stand
        those of the scale that nobody published figures of.
    """
    systems = list(published)
    if systems:
        systems += [variant for variant in scale.systems if variant not in SYSTEMS]
    return list(dict.fromkeys([*variants(in_paper=True), *scale.variants, *systems]))


def has_all_data(task: str, record: Record, split: str = "test") -> bool:
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
