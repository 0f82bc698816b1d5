"""The tables that `reproduce.py --table` makes, a module each.

To add one, write its module with these two functions, and name it here:

  experiments(scale): the runs that fill it, a list of `Experiment`.
  sheets(scale, results): what it shows of them, a list of `Sheet`. It draws its
    pictures, too, into the folder of the `Results`.
"""

from types import ModuleType

from common.errors import UserError
from reproduction.experiment import Experiment
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


def named(name: str) -> dict[str, ModuleType]:
    """The tables of a name: one, or "all".

    Raises:
      UserError: if there is none of that name.
    """
    if name not in (*TABLES, "all"):
        known = ", ".join((*TABLES, "all"))
        raise UserError(f"--table={name}: expected one of {known}")
    return {one: TABLES[one] for one in (ALL if name == "all" else (name,))}


def experiments(tables: dict[str, ModuleType], scale: Scale) -> list[Experiment]:
    """The runs of tables; one that several share is there once."""
    runs = [one for table in tables.values() for one in table.experiments(scale)]
    return list({one.name: one for one in runs}.values())
