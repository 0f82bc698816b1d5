"""The tables that `reproduce.py --table` makes.

To add one, write its file with a `Table` and name it here.
"""

from common.errors import UserError
from reproduction.experiment import Experiment
from reproduction.scales import Scale
from reproduction.tables.fidelity import TABLE as FIDELITY
from reproduction.tables.learning_rates import TABLE as FIGURE_2
from reproduction.tables.long_sequences import TABLE as TABLE_4
from reproduction.tables.table import Table
from reproduction.tables.text_classification import TABLE as TABLE_3
from reproduction.tables.translation import TABLE as TABLE_2

TABLES = {
    table.name: table for table in (TABLE_2, TABLE_3, TABLE_4, FIGURE_2, FIDELITY)
}
# The fidelity table takes longer than the others together, and is asked for by name.
ALL = ("2", "3", "4", "figure2")


def named(name: str) -> list[Table]:
    """The tables of a name: one, or "all".

    Raises:
      UserError: if there is none of that name.
    """
    if name not in (*TABLES, "all"):
        known = ", ".join((*TABLES, "all"))
        raise UserError(f"--table={name}: expected one of {known}")
    return [TABLES[one] for one in (ALL if name == "all" else (name,))]


def experiments(
    tables: list[Table], scale: Scale, seeds: int | None
) -> list[Experiment]:
    """The runs of tables; one that several share is there once."""
    found = [one for table in tables for one in table.experiments(scale, seeds)]
    return list({experiment.name: experiment for experiment in found}.values())
