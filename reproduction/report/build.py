"""The report of whatever runs lie in a folder."""

import logging
import tempfile
from pathlib import Path

from common.errors import UserError
from common.paths import check_writable_file, make_path, write_whole
from reproduction.comparison import comparison
from reproduction.facts import facts
from reproduction.pictures import learning_curves
from reproduction.report.page import page
from reproduction.survey import Run, survey

NAME = "report.html"

logger = logging.getLogger("transevolve")


def report(folder) -> Path:
    """Compares the runs in a folder and all folders below it, finished or not.

    A run of which a file is damaged is named with the reason, and left out.

    Args:
      folder: with workdirs of train.py or reproduce.py.

    Returns:
      Path of the page, `report.html` in the folder.

    Raises:
      UserError: if there is no run, or the page cannot be written.
    """
    folder = make_path(folder, "--report")
    check_writable_file(folder / NAME, "--report")
    runs, damaged = survey(folder)
    if not runs:
        reasons = "".join(f"; {reason}" for reason in damaged.values())
        raise UserError(
            f"--report={folder}: expected a folder with runs of train.py or "
            f"reproduce.py, found none{reasons}"
        )
    sheets = comparison(runs)
    with tempfile.TemporaryDirectory() as pictures:
        for number, sheet in enumerate(sheets):
            members = [run for run in runs if run.task == sheet.title]
            drawn = learning_curves(
                members, sheet.title, Path(pictures), f"{number}.png"
            )
            if drawn:
                sheets[number] = sheet._replace(pictures=[drawn])
        title = f"Runs in {folder.resolve().name}"
        notes = [_what(runs), *left_out(damaged)]
        text = page(title, sheets, runs, facts_of(runs), Path(pictures), notes)
    write_whole(folder / NAME, text)
    return folder / NAME


def _what(runs):
    tasks = sorted({run.task for run in runs})
    return (
        f"A comparison of the runs that were found, of {', '.join(tasks)}. "
        "Each task has a table and its learning curves."
    )


def left_out(damaged: dict[str, str]) -> list[str]:
    """Logs and returns which runs are not shown, as a file of them is damaged."""
    for reason in damaged.values():
        logger.warning("left out: %s", reason)
    return [f"The run {name} is left out: {why}." for name, why in damaged.items()]


def facts_of(runs: list[Run]) -> dict[str, str]:
    """Machines of the runs, as far as they wrote them down, and what made a report."""
    machines = {str(run.facts["machine"]) for run in runs if "machine" in run.facts}
    others = sum("machine" not in run.facts for run in runs)
    found = sorted(machines)
    if others:
        found.append(f"not recorded, of {others} runs")
    here = {f"{what} of this report": text for what, text in facts().items()}
    return {"machines of the runs": "; ".join(found) or "none", **here}
