"""Rows of a benchmark as tables and pictures."""

from benchmarks.calls import Setting
from common.errors import UserError
from common.paths import make_path
from reporting.tables import markdown_table

# Most tables have one value of each: they stand above the table then.
COMMON = ("benchmark", *Setting._fields, "batch", "window")


def markdown(rows: list[dict]) -> str:
    """A table for each kind of row; what all rows share stands above it."""
    kinds = dict.fromkeys(row["benchmark"] for row in rows)
    return "\n\n".join(
        _table([row for row in rows if row["benchmark"] == kind]) for kind in kinds
    )


def _table(rows):
    first = rows[0]
    columns = list(dict.fromkeys(field for row in rows for field in row))
    shared = [
        field
        for field in COMMON
        if field in first and all(row.get(field) == first[field] for row in rows)
    ]
    columns = [field for field in columns if field not in shared]
    columns.sort(key=lambda field: not isinstance(first.get(field), str))
    num_texts = sum(isinstance(first.get(field), str) for field in columns)
    cells = [[_cell(row.get(field, "")) for field in columns] for row in rows]
    above = ", ".join(f"{field} {_cell(first[field])}" for field in shared)
    return f"{above}\n\n{markdown_table(columns, cells, left=num_texts)}"


def _cell(value):
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)


def plot(rows: list[dict], path) -> None:
    """Draws speed or memory against length, or errors, to a PNG.

    Raises:
      UserError: if no row was measured.
    """
    from reporting.plots import plot_against_length, plot_errors

    path = make_path(path, "--plot")
    kind = rows[0]["benchmark"]
    if kind == "features":
        return plot_errors(rows, path)
    rows = [
        dict(row) for row in rows if row["benchmark"] == kind and "not_run" not in row
    ]
    if not rows:
        raise UserError(f"--plot={path}: expected rows that could be measured")
    fields = ["peak_memory_mb"]
    if kind == "speed":
        fields = ["seconds_per_1000_tokens", "ratio_to_transformer"]
        for row in rows:
            row[fields[0]] = 1000 * row["seconds"] / row["batch"] / row["length"]
    first = rows[0]
    step = "training step" if first["mode"] == "train" else "forward pass"
    tokens = [row["batch"] * row["length"] for row in rows]
    ends = dict.fromkeys((min(tokens), max(tokens)))
    numbers = " to ".join(f"{number:,}" for number in ends)
    title = (
        f"{first['size']} configuration, {step}, {first['precision']}, "
        f"{numbers} tokens a batch"
    )
    plot_against_length(rows, fields, title, path)
