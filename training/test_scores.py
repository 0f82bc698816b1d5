"""Test scores at each validation, which choose nothing."""

import json
from pathlib import Path

from common.json_files import read_rows
from training.metrics import METRICS

NAME = "test_scores.jsonl"


class TestScores:
    """Evaluates test data and writes the metrics, an object a line.

    A step that is taken again after an interruption has two lines, of which the last
    one counts.

    Args:
      task: a `tasks.task.Task`.
      evaluator: of its model.
      workdir: of the run; None where another worker writes.
    """

    __test__ = False  # no test of pytest's

    def __init__(self, task, evaluator, workdir: Path | None):
        self.batches = task.evaluation_batches("test")
        self._task = task
        self._evaluator = evaluator
        self._path = None if workdir is None else workdir / NAME

    def measure(self, step: int, on_progress) -> None:
        """Evaluates the model as it is after `step` updates."""
        sums = self._evaluator.evaluate(self.batches, on_progress)
        row = {"step": step, **self._task.totals(sums).metrics()}
        if self._path is not None:
            # A line that was cut off by a kill ends here.
            with self._path.open("a+") as file:
                end = file.tell()
                file.seek(max(0, end - 1))
                is_cut = file.read(1) not in ("", "\n")
                file.write("\n" * is_cut + json.dumps(row) + "\n")


def read(workdir: Path) -> list[dict]:
    """The metrics of each step that was measured, in order.

    Raises:
      UserError: if the file is damaged.
    """
    rows = read_rows(workdir / NAME, METRICS)
    latest = {row["step"]: row for row in rows}
    return [latest[step] for step in sorted(latest)]
