"""Loss on validation data against the time of training."""

import statistics

import numpy as np

from analysis.comparable import check_comparable, run_name
from benchmarks.timing import interleave
from benchmarks.updates import task_updates
from common.errors import UserError
from evaluation.run import Run
from reporting.plots import plot_losses
from reporting.tables import markdown_table
from reproduction import records

ROUNDS, UPDATES_PER_ROUND = 5, 4


def against_time(runs: list[Run]) -> dict[str, list[tuple[float, float]]]:
    """(minutes, loss) of each validation of runs, by the run's name.

    Minutes are the updates so far, times the median seconds of one. Updates of all runs
    are timed by turns, on this machine. So they are comparable, though runs were
    trained beside other work, or elsewhere. The time of validations does not count.

    Args:
      runs: of one task, with the same validation data.

    Raises:
      UserError: if a run has no validations, or the runs cannot be compared.
    """
    check_comparable(runs, "validation")
    validations = {}
    for run in runs:
        rows = records.read(run.workdir).validations
        if not rows:
            raise UserError(
                f"--workdir={run.workdir}: expected validations, found none"
            )
        if any(row.get("loss") is None for row in rows):
            raise UserError(
                f"--workdir={run.workdir}: expected a loss of each validation"
            )
        validations[run_name(run)] = [(row["step"], row["loss"]) for row in rows]
    updates = {run_name(run): task_updates(run.task, UPDATES_PER_ROUND) for run in runs}
    seconds = interleave(updates, ROUNDS, "timing updates")
    return {
        name: [
            (step * statistics.median(seconds[name]) / UPDATES_PER_ROUND / 60, loss)
            for step, loss in losses
        ]
        for name, losses in validations.items()
    }


def draw(runs: list[Run], path) -> str:
    """Draws a line for each run, as a PNG file.

    Args:
      runs: see `against_time`.
      path: where to write it, a `Path`.

    Returns:
      A table in Markdown: each run's time, its last loss, and its loss when the first
      run had ended, if it had been validated by then.

    Raises:
      UserError: as `against_time` does.
    """
    lines = against_time(runs)
    plot_losses(lines, path)
    first = min(line[-1][0] for line in lines.values())
    header = [
        "model",
        "minutes of updates",
        "last loss",
        f"loss at {first:.1f} minutes",
    ]
    cells = []
    for name, line in lines.items():
        minutes, losses = zip(*line, strict=True)
        by_then = np.interp(first, minutes, losses)
        shown = f"{by_then:.3f}" if first >= minutes[0] else ""
        cells.append([name, f"{minutes[-1]:.1f}", f"{losses[-1]:.3f}", shown])
    return markdown_table(header, cells)
