"""Tables of results, as data: what Markdown, JSON, CSV and the report show."""

import csv
import io
import json
from typing import NamedTuple

from reporting.tables import markdown_table

# Of sheets whose figures are means.
DEVIATIONS = "Behind a mean of several runs stands their sample standard deviation."
# Of those with accuracies of classifiers, and with gains of pairs of runs.
CHECKPOINT = (
    "Test accuracy is that of the checkpoint with the best validation accuracy."
)
EVIDENCE = (
    "Evidence is clear if chance alone would give as large a difference in fewer than "
    "one case of 20."
)


class Column(NamedTuple):
    """A column of a table.

    Attributes:
      key: of the cells in the rows.
      title: for people.
      digits: after the point, of numbers; None for text.
      signed: whether numbers bear a sign, as differences do.
      is_mean: whether rows have a standard deviation too, under KEY_deviation, which
        stands behind the number.
    """

    key: str
    title: str
    digits: int | None = None
    signed: bool = False
    is_mean: bool = False

    @property
    def keys(self) -> list[str]:
        """The keys of all cells that the column shows."""
        return [self.key, *[f"{self.key}_deviation"] * self.is_mean]

    def cell(self, row: dict) -> str:
        """What a row says here, for people; empty where it has no value."""
        value, *deviation = map(row.get, self.keys)
        if value is None:
            return ""
        if self.digits is None:
            return str(value)
        text = f"{value:{'+' if self.signed else ''},.{self.digits}f}"
        for one in deviation:
            text += "" if one is None else f" ± {one:,.{self.digits}f}"
        return text


def compared_columns(gain: str) -> list[Column]:
    """Columns of the cells of `scores.compared_cells`.

    Args:
      gain: title of the column of gains.
    """
    return [
        Column("accuracy", "test accuracy %", 2, is_mean=True),
        Column("interval", "± of 95 %", 2),
        Column("gain", gain, 2, signed=True, is_mean=True),
        Column("badge", "evidence"),
        Column("runs", "runs", 0),
        Column("parameters", "parameters", 0),
    ]


class Picture(NamedTuple):
    """A picture of results.

    Attributes:
      file: name of the PNG, in the folder of the results.
      caption: what is drawn.
      alternative: what it shows, in words, for who cannot see it.
    """

    file: str
    caption: str
    alternative: str


class Sheet(NamedTuple):
    """A table with what is to be said of it.

    Attributes:
      name: of its files, without ending.
      title: for people.
      columns: a list of `Column`.
      rows: {key: text, number or None} each.
      notes: sentences, each a paragraph.
      pictures: that belong to it.
    """

    name: str
    title: str
    columns: list[Column]
    rows: list[dict]
    notes: list[str] = []
    pictures: list[Picture] = []

    @property
    def filled(self) -> list[Column]:
        """The columns in which some row says something."""
        said = {key for row in self.rows for key in row if row[key] not in (None, "")}
        return [column for column in self.columns if column.key in said]

    def markdown(self) -> str:
        """Title, table, notes and pictures.

        A column that has one text in all rows is a sentence instead, if it is not the
        first one.
        """
        alike = {
            column: self.rows[0][column.key]
            for column in self.filled[1:]
            if column.digits is None
            and len(self.rows) > 1
            and len({row.get(column.key) for row in self.rows}) == 1
        }
        said = [
            f'All rows have "{text}" as {one.title}.' for one, text in alike.items()
        ]
        columns = [column for column in self.filled if column not in alike]
        # Text first: Markdown aligns by column.
        columns.sort(key=lambda column: column.digits is not None)
        cells = [[column.cell(row) for column in columns] for row in self.rows]
        left = sum(column.digits is None for column in columns)
        table = markdown_table([column.title for column in columns], cells, left)
        # Brackets would end what Markdown takes for a picture's description.
        brackets = str.maketrans({"[": "\\[", "]": "\\]"})
        pictures = [
            f"![{alternative.translate(brackets)}]({file})\n\n{caption}"
            for file, caption, alternative in self.pictures
        ]
        texts = [f"# {self.title}", table, " ".join(said), *self.notes, *pictures]
        return "\n\n".join(filter(None, texts)) + "\n"

    def json(self) -> str:
        """Title, notes and rows; numbers in full."""
        content = {"title": self.title, "notes": self.notes, "rows": self.rows}
        return json.dumps(content, indent=2, allow_nan=False) + "\n"

    def csv(self) -> str:
        """The rows, with the keys as header; numbers in full."""
        text = io.StringIO()
        keys = [key for column in self.columns for key in column.keys]
        writer = csv.DictWriter(text, keys, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()
