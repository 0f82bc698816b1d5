"""Learning curves, with what they show in words."""

import textwrap
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.figure import Figure

from common.paths import make_path
from reporting.palette import Look, look
from reporting.png import drawable, write_png
from reproduction.comparison import counted_in
from reproduction.differences import group
from reproduction.records import Record
from reproduction.scores import mean_score
from reproduction.sheet import Picture

SHADES = 64
MARKED = 12  # points of a line, about
MOST_LINES = 12  # more cannot be told apart
# Characters of a legend's line: of two beside each other, and of one alone.
SHORT_LABEL, LONGEST_LABEL = 32, 64


class Curve(NamedTuple):
    """The mean over the runs of one line, and how far they reach, point by point.

    Attributes:
      label: for people.
      look: how it is drawn.
      at: steps or epochs.
      mean, low, high: of the runs that have got there.
    """

    label: str
    look: Look
    at: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def curve(
    label: str, look: Look, records: list[Record], field: str, place: str, factor: float
) -> Curve:
    """The `Curve` of a field of validations, times a factor, by "step" or "epoch"."""
    points = {}
    for record in records:
        # A step that was repeated after an interruption counts once.
        rows = {row["step"]: row for row in record.validations}
        for row in rows.values():
            x, y = row.get(place), row.get(field)
            if x is not None and y is not None:
                # An epoch of another seed may have another number of steps.
                points.setdefault(x, []).append(factor * y)
    values = [points[x] for x in sorted(points)]
    mean = [sum(each) / len(each) for each in values]
    low, high = ([end(each) for each in values] for end in (min, max))
    return Curve(label, look, sorted(points), mean, low, high)


def learning_curves(
    records: list[Record], title: str, folder: Path, name: str
) -> Picture | None:
    """Draws loss and accuracy on validation data, a line for each variant.

    A line is the mean over the seeds that have got there, a band reaches from the
    lowest to the highest. Where runs of a variant differ in settings, each setting has
    a line. Of more than `MOST_LINES` the best are drawn.

    Args:
      records: of runs of one task.
      title: what they learn, for people.
      folder: where to write the PNG.
      name: of the PNG, with its ending.

    Returns:
      The picture; None if no run has validated.
    """
    place, panels = counted_in(records), {}
    lines, left_out = _lines(records)
    for field, factor, heading in (
        ("loss", 1, "validation loss"),
        ("accuracy", 100, "validation accuracy (%)"),
    ):
        curves = [curve(*line, field, place, factor) for line in lines]
        if curves := [one for one in curves if one.at]:
            panels[heading] = curves
    if not panels:
        return None
    with matplotlib.rc_context({"font.size": 11}):  # legible on a phone
        figure = _figure(panels, place)
    write_png(figure, make_path(folder, "folder") / name, dpi=150, colors=SHADES)
    caption = f"Learning curves of {title} on validation data."
    if any(one.low != one.high for curves in panels.values() for one in curves):
        caption += (
            " A line is the mean over the runs that have got so far; a band reaches "
            "from the lowest to the highest of them."
        )
    if left_out:
        caption += f" The {len(lines)} best of {len(lines) + left_out} are drawn."
    words = [_tell(heading, curves, place) for heading, curves in panels.items()]
    return Picture(name, caption, f"{title}. {' '.join(words)}")


def _lines(records):
    """(label, look, records) of each line, and how many are left out."""
    lines, numbers = [], {}
    for (variant, settings), members in group(records).items():
        index = numbers[variant] = numbers.get(variant, -1) + 1
        label = f"{variant}, {settings}" if settings else variant
        score = mean_score(record.best_validation for record in members).mean
        if score is not None:
            lines.append((score, label, look(variant, index), members))
    sign = -1 if records[0].kind.higher_is_better else 1
    best = sorted(range(len(lines)), key=lambda i: sign * lines[i][0])[:MOST_LINES]
    return [lines[i][1:] for i in sorted(best)], len(lines) - len(best)


def _figure(panels, place):
    """A panel below the other, and a legend below them."""
    height = 2.9 * len(panels)
    figure = Figure(figsize=(6.4, height), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    for axis, (heading, curves) in zip(axes, panels.items(), strict=True):
        for one in curves:
            _draw(axis, one)
        axis.set_ylabel(heading)
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


def _draw(axis, one):
    axis.plot(
        one.at,
        one.mean,
        label=drawable(one.label).replace("$", r"\$"),  # no formula
        linewidth=1.6,
        markersize=4.5,
        markevery=max(1, len(one.at) // MARKED),
        **one.look._asdict(),
    )
    if one.low != one.high:
        color = one.look.color
        axis.fill_between(one.at, one.low, one.high, color=color, alpha=0.15, lw=0)


def _tell(heading, curves, place):
    """Where the lines of a panel begin and end."""
    is_loss = "loss" in heading
    ends = sorted(curves, key=lambda one: one.mean[-1], reverse=not is_loss)
    unit = " %" if "%" in heading else ""
    digits = 3 if is_loss else 1
    what = heading.removesuffix(" (%)").capitalize()

    def path(one):
        first, last = f"{one.mean[0]:.{digits}f}", f"{one.mean[-1]:.{digits}f}"
        return f"from {first} to {last}{unit} after {one.at[-1]:,g} {place}s"

    best, worst = ends[0], ends[-1]
    if best is worst:
        return f"{what}: {best.label} goes {path(best)}."
    words = ("lowest", "highest") if is_loss else ("highest", "lowest")
    return (
        f"{what} of {len(ends)} lines: {best.label} ends {words[0]}, {path(best)}; "
        f"{worst.label} ends {words[1]}, {path(worst)}."
    )
