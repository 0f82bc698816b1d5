"""Pictures of results, each with what it shows in words."""

import textwrap
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from common.paths import make_path
from reporting.palette import look
from reporting.plots import LABELS, plot_against_length
from reporting.png import drawable, write_png
from reproduction.comparison import best_validation, counted_in, kind_of
from reproduction.settings import group
from reproduction.sheet import Picture
from reproduction.survey import Run

SHADES = 64
MARKED = 12  # points of a line, about
MOST_LINES = 12  # more cannot be told apart
# Characters of a legend's line: of two beside each other, and of one alone.
SHORT_LABEL, LONGEST_LABEL = 32, 64
WORDS = {
    "ratio_to_transformer": ("Speed over the Transformer's", "{:.2f}"),
    "peak_memory_mb": ("Peak memory in MB", "{:,.0f}"),
}


class Curve:
    """The mean over the runs of one line, and how far they reach, point by point.

    Attributes:
      label: for people.
      look: how it is drawn.
      at: steps or epochs.
      mean, low, high: of the runs that have got there.
    """

    def __init__(self, label, look, runs, field, place, factor):
        self.label, self.look = label, look
        points = {}
        for run in runs:
            # A step that was repeated after an interruption counts once.
            rows = {row["step"]: row for row in run.validations}
            for row in rows.values():
                x, y = row.get(place), row.get(field)
                if x is not None and y is not None:
                    # An epoch of another seed may have another number of steps.
                    points.setdefault(x, []).append(factor * y)
        self.at = sorted(points)
        values = [points[x] for x in self.at]
        self.mean = [sum(found) / len(found) for found in values]
        self.low = [min(found) for found in values]
        self.high = [max(found) for found in values]


def learning_curves(
    runs: list[Run], title: str, folder: Path, name: str
) -> Picture | None:
    """Draws loss and accuracy on validation data, a line for each variant.

    A line is the mean over the seeds that have got there, a band reaches from the
    lowest to the highest. Where runs of a variant differ in settings, each setting has
    a line. Of more than `MOST_LINES` the best are drawn.

    Args:
      runs: of one task.
      title: what they learn, for people.
      folder: where to write the PNG.
      name: of the PNG, with its ending.

    Returns:
      The picture; None if no run has validated.
    """
    place, panels = counted_in(runs), []
    lines, left_out = _lines(runs)
    for field, factor, heading in (
        ("loss", 1, "validation loss"),
        ("accuracy", 100, "validation accuracy (%)"),
    ):
        curves = [Curve(*line, field, place, factor) for line in lines]
        if curves := [curve for curve in curves if curve.at]:
            panels.append((heading, curves))
    if not panels:
        return None
    with matplotlib.rc_context({"font.size": 11}):  # legible on a phone
        figure = _figure(panels, place)
    write_png(figure, make_path(folder, "folder") / name, dpi=150, colors=SHADES)
    caption = f"Learning curves of {title} on validation data."
    if any(curve.low != curve.high for _, curves in panels for curve in curves):
        caption += (
            " A line is the mean over the runs that have got so far; a band reaches "
            "from the lowest to the highest of them."
        )
    if left_out:
        caption += f" The {len(lines)} best of {len(lines) + left_out} are drawn."
    words = [_tell(heading, curves, place) for heading, curves in panels]
    return Picture(name, caption, f"{title}. {' '.join(words)}")


def against_length(
    rows: list[dict], field: str, title: str, folder: Path, name: str
) -> Picture:
    """Draws speed or memory against length, a line for each model.

    Args:
      rows: of `benchmarks.speed` or `benchmarks.memory`; what has no `length` is left
        out.
      field: a key of `WORDS`.
      title: of the picture.
      folder: where to write the PNG.
      name: of the PNG, with its ending.
    """
    rows = [row for row in rows if "length" in row]
    plot_against_length(rows, [field], title, make_path(folder, "folder") / name)
    caption = f"{title}: {LABELS[field]}, by length."
    return Picture(name, caption, _tell_field(rows, field))


def _lines(runs):
    """(label, look, runs) of each line, and how many are left out."""
    lines, numbers = [], {}
    for (variant, settings), members in group(runs).items():
        index = numbers[variant] = numbers.get(variant, -1) + 1
        label = f"{variant}, {settings}" if settings else variant
        scores = [best_validation(run) for run in members]
        scores = [score for score in scores if score is not None]
        if scores:
            score = sum(scores) / len(scores)
            lines.append((score, label, look(variant, index), members))
    sign = -1 if kind_of(runs).higher_is_better else 1
    best = sorted(range(len(lines)), key=lambda i: sign * lines[i][0])[:MOST_LINES]
    return [lines[i][1:] for i in sorted(best)], len(lines) - len(best)


def _figure(panels, place):
    """A panel below the other, and a legend below them."""
    height = 2.9 * len(panels)
    figure = Figure(figsize=(6.4, height), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    for axis, (title, curves) in zip(axes, panels, strict=True):
        for curve in curves:
            _draw(axis, curve)
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel(f"{place}s")
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    handles, labels = axes[0].get_legend_handles_labels()
    columns = 2 if max(map(len, labels)) < SHORT_LABEL else 1
    labels = [textwrap.fill(label, LONGEST_LABEL) for label in labels]
    lines = sum(label.count("\n") + 1 for label in labels) / columns
    figure.set_figheight(height + 0.24 * lines)
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False
    )
    return figure


def _draw(axis, curve):
    axis.plot(
        curve.at,
        curve.mean,
        label=drawable(curve.label).replace("$", r"\$"),  # no formula
        linewidth=1.6,
        markersize=4.5,
        markevery=max(1, len(curve.at) // MARKED),
        **curve.look._asdict(),
    )
    if curve.low != curve.high:
        axis.fill_between(
            curve.at, curve.low, curve.high, color=curve.look.color, alpha=0.15, lw=0
        )


def _tell(title, curves, place):
    """Where the lines of a panel begin and end."""
    is_loss = "loss" in title
    ends = sorted(curves, key=lambda curve: curve.mean[-1], reverse=not is_loss)
    unit = " %" if "%" in title else ""
    digits = 3 if is_loss else 1
    what = title.removesuffix(" (%)").capitalize()

    def path(curve):
        first, last = f"{curve.mean[0]:.{digits}f}", f"{curve.mean[-1]:.{digits}f}"
        return f"from {first} to {last}{unit} after {curve.at[-1]:,g} {place}s"

    best, *others = ends
    if not others:
        return f"{what}: {best.label} goes {path(best)}."
    words = ("lowest", "highest") if is_loss else ("highest", "lowest")
    return (
        f"{what} of {len(ends)} lines: {best.label} ends {words[0]}, {path(best)}; "
        f"{others[-1].label} ends {words[1]}, {path(others[-1])}."
    )


def _tell_field(rows, field):
    """Each model's figures at its shortest and longest length."""
    what, form = WORDS[field]
    parts = []
    for model in dict.fromkeys(row["model"] for row in rows):
        found = [row for row in rows if row["model"] == model and field in row]
        found.sort(key=lambda row: row["length"])
        if found:
            first, last = found[0], found[-1]
            parts.append(
                f"{model} {form.format(first[field])} at {first['length']:,} tokens, "
                f"{form.format(last[field])} at {last['length']:,}"
            )
    return f"{what}: {'; '.join(parts)}." if parts else f"{what}: not measured."
