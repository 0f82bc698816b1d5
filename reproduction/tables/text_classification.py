"""Table 3: accuracy of text classification, AG News and IMDB in word pieces."""

from reproduction.tables import accuracy
from reproduction.tables.table import Table

TASKS = ["ag_news", "imdb"]


def experiments(scale, seeds):
    """See `Table`."""
    return accuracy.experiments(TASKS, scale, seeds)


def sheets(scale, seeds, results):
    """See `Table`."""
    title = "Table 3: text classification"
    return [accuracy.sheet("table3", title, TASKS, scale, seeds, results)]


TABLE = Table("3", experiments, sheets)
