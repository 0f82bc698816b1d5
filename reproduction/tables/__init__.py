"""The tables that `reproduce.py --table` makes, a module each.

To add one, write its module with these functions, and name it here:

  sheets(scale, results): what it shows, a list of `Sheet`. It draws its pictures, too,
    into the folder of the `Results`.

It has one of these, or both, for what it needs:

  rows(scale, results): for each row the cells that say what it is, and the list of
    `Experiment` that fills it. Which these are may depend on the `Results` so far; with
    None for them, it is all runs that there may be.
  jobs(scale, folder): a list of `running.Job` that write into the folder of results.
"""

from reproduction.experiment import Experiment
from reproduction.results import Results
from reproduction.scales import Scale
from reproduction.tables import (
    blocks,
    classification,
    fast_weights,
    fidelity,
    imdb,
    learning_rates,
    long_sequences,
    pretraining,
    recall,
    retrieval,
    translation,
)

TABLES = {
    "2": translation,
    "3": classification,
    "4": long_sequences,
    "figure2": learning_rates,
    "fidelity": fidelity,
    "blocks": blocks,
    "imdb": imdb,
    "pretraining": pretraining,
    "retrieval": retrieval,
    "recall": recall,
    "fast-weights": fast_weights,
}
# The others are asked for by name: four compare what is not in the paper, and take
# long, and three are other papers'.
ALL = ("2", "3", "4", "figure2")
# Those that have no other models than were chosen to be run.
OF_CHOSEN_MODELS = {"figure2", "fidelity"}
# Those whose models are given.
OF_GIVEN_MODELS = {
    "blocks",
    "imdb",
    "pretraining",
    "retrieval",
    "recall",
    "fast-weights",
}


def experiments(
    tables, scale: Scale, results: Results | None = None
) -> list[Experiment]:
    """The runs of named tables; one that several share is there once.

    Args:
      tables: keys of `TABLES`.
      scale: that they have.
      results: as `rows` of a table takes them.
    """
    of_runs = [TABLES[name] for name in tables if hasattr(TABLES[name], "rows")]
    rows = [row for table in of_runs for row in table.rows(scale, results)]
    return list({one.name: one for _, runs in rows for one in runs}.values())
