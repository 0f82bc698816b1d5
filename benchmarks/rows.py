"""Rows of a benchmark as tables and pictures."""

from common.errors import UserError
from reporting.tables import markdown_table

# The same in every row of most tables: said above the table instead.
COMMON = (
    "benchmark",
    "mode",
    "task",
    "size",
    "precision",
    "causal",
    "xla",
    "batch",
    "window",
)


def markdown(rows: list[dict]) -> str:
    """A table for each kind of row; what all rows share stands above it."""
    kinds = dict.fromkeys(row["benchmark"] for row in rows)
    return "\n\n".join(
        _table([row for row in rows if row["benchmark"] == kind]) for kind in kinds
    )


def _table(rows):
    columns = list(dict.fromkeys(field for row in rows for field in row))
    shared = {
        field: rows[0][field]
        for field in COMMON
        if all(row.get(field) == rows[0].get(field) for row in rows)
        and field in rows[0]
    }
    columns = [field for field in columns if field not in shared]
    text = [field for field in columns if isinstance(rows[0].get(field), str)]
    columns = text + [field for field in columns if field not in text]
    cells = [[_cell(row.get(field, "")) for field in columns] for row in rows]
    above = ", ".join(f"{field} {_cell(value)}" for field, value in shared.items())
    return f"{above}\n\n{markdown_table(columns, cells, left=len(text))}"


def _cell(value):
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)


def plot(rows: list[dict], path) -> None:
    """Draws speed or memory against length, or errors of features, to a PNG.

    Raises:
      UserError: if there was no memory for any row.
    """
    from reporting.plots import plot_against_length, plot_errors

    kind = rows[0]["benchmark"]
    if kind == "features":
        return plot_errors(rows, path)
    rows = [dict(row) for row in rows if row["benchmark"] == kind]
    rows = [row for row in rows if "not_run" not in row]
    if not rows:
        raise UserError(f"--plot={path}: expected rows that could be measured")
    if kind == "speed":
        for row in rows:
            per_token = row["seconds"] / row["batch"] / row["length"]
            row["seconds_per_1000_tokens"] = 1000 * per_token
        fields = ["seconds_per_1000_tokens", "ratio_to_transformer"]
    else:
        fields = ["peak_memory_mb"]
    first = rows[0]
    tokens = [row["batch"] * row["length"] for row in rows]
    title = (
        f"{first['size']} configuration, "
        f"{'training step' if first['mode'] == 'train' else 'forward pass'}, "
        f"{first['precision']}, {_range(tokens)} tokens a batch"
    )
    plot_against_length(rows, fields, title, path)


def _range(numbers):
    ends = dict.fromkeys((min(numbers), max(numbers)))
    return " to ".join(f"{number:,}" for number in ends)
