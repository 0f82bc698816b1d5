"""The tables that `reproduce.py --table` makes, a module each.

To add one, write its module with these two functions, and name it here:

  rows(scale, results): for each row the cells that say what it is, and the list of
    `Experiment` that fills it. Which these are may depend on the `Results` so far; with
    None for them, it is all runs that there may be.
  sheets(scale, results): what it shows of these rows, a list of `Sheet`. It draws its
    pictures, too, into the folder of the `Results`.
"""

from common.errors import UserError
from reproduction.experiment import Experiment
from reproduction.results import Results
from reproduction.scales import Scale
from reproduction.tables import (
    classification,
    fidelity,
    learning_rates,
    long_sequences,
    translation,
)

TABLES = {
    "2": translation,
    "3": classification,
    "4": long_sequences,
    "figure2": learning_rates,
    "fidelity": fidelity,
}
# The fidelity table takes longer than the others together, and is asked for by name.
ALL = ("2", "3", "4", "figure2")
# Those that show measured speed and memory, and those that have no other models than
# were chosen to be run.
TIMED, OF_CHOSEN_MODELS = {"4"}, {"figure2", "fidelity"}


def named(name: str) -> tuple[str, ...]:
    """The tables of a name: one, or "all".

    Raises:
      UserError: if there is none of that name.
    """
    if name not in (*TABLES, "all"):
        known = ", ".join((*TABLES, "all"))
        raise UserError(f"--table={name}: expected one of {known}")
    return ALL if name == "all" else (name,)


def experiments(
    tables, scale: Scale, results: Results | None = None
) -> list[Experiment]:
    """The runs of named tables; one that several share is there once.

    Args:
      tables: keys of `TABLES`.
      scale: that they have.
      results: as `rows` of a table takes them.
    """
    rows = [row for table in tables for row in TABLES[table].rows(scale, results)]
    return list({one.name: one for _, runs in rows for one in runs}.values())
