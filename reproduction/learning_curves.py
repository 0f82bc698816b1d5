"""Learning curves, with what they show in words."""

import textwrap
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from common.paths import make_path
from reporting.palette import look
from reporting.plots import add_grid, add_legend
from reporting.png import drawable, write_png
from reproduction.comparison import counted_in
from reproduction.differences import group
from reproduction.records import Record
from reproduction.scores import mean_score
from reproduction.sheet import Picture

# Of each panel: the field, its factor, the title, and digits in words.
PANELS = [
    ("loss", 1, "validation loss", 3),
    ("accuracy", 100, "validation accuracy (%)", 1),
]
SHADES = 64
MARKED = 12  # points of a line, about
MOST_LINES = 12  # more cannot be told apart
# Characters of a legend's line: of two beside each other, and of one alone.
SHORT_LABEL, LONGEST_LABEL = 32, 64


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
      folder, name: of the PNG.

    Returns:
      The picture; None if no run has validated.
    """
    place, (lines, left_out) = counted_in(records), _lines(records)
    panels, words = {}, []
    for field, factor, heading, digits in PANELS:
        curves = [
            (label, style, points)
            for label, style, members in lines
            if (points := curve(members, field, place, factor))
        ]
        if curves:
            panels[heading] = curves
            words.append(_tell(heading, digits, curves, place))
    if not panels:
        return None
    with matplotlib.rc_context({"font.size": 11}):  # legible on a phone
        figure = _figure(panels, place)
    write_png(figure, make_path(folder, "folder") / name, dpi=150, colors=SHADES)
    caption = f"Learning curves of {title} on validation data."
    if any(_spreads(points) for curves in panels.values() for *_, points in curves):
        caption += (
            " A line is the mean over the runs that have got so far; a band reaches "
            "from the lowest to the highest of them."
        )
    if left_out:
        caption += f" The {len(lines)} best of {len(lines) + left_out} are drawn."
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


def curve(
    records: list[Record], field: str, place: str, factor: int
) -> list[tuple[float, ...]]:
    """Points of the line of some runs.

    Args:
      field: of validations.
      place: "step" or "epoch".
      factor: on the field.

    Returns:
      (place, mean, lowest, highest) of the runs that have got there, in order.
    """
    points = {}
    for record in records:
        for row in record.validations:
            x, y = row.get(place), row.get(field)
            if x is not None and y is not None:
                # An epoch of another seed may have another number of steps.
                points.setdefault(x, []).append(factor * y)
    return [(x, sum(y) / len(y), min(y), max(y)) for x, y in sorted(points.items())]


def _spreads(points):
    """Whether some run is not where another is."""
    return any(low != high for *_, low, high in points)


def _figure(panels, place):
    """A panel below the other, and a legend below them."""
    height = 2.9 * len(panels)
    figure = Figure(figsize=(6.4, height), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    for axis, (heading, curves) in zip(axes, panels.items(), strict=True):
        for label, style, points in curves:
            at, mean, low, high = zip(*points, strict=True)
            options = {**style._asdict(), "linewidth": 1.6, "markersize": 4.5}
            options["markevery"] = max(1, len(at) // MARKED)
            # What stands between two $ would be a formula.
            options["label"] = drawable(label).replace("$", r"\$")
            axis.plot(at, mean, **options)
            if _spreads(points):
                axis.fill_between(at, low, high, color=style.color, alpha=0.15, lw=0)
        axis.set_ylabel(heading)
        add_grid(axis)
    axes[-1].set_xlabel(f"{place}s")
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    handles, labels = axes[0].get_legend_handles_labels()
    columns = 2 if max(map(len, labels)) < SHORT_LABEL else 1
    labels = [textwrap.fill(label, LONGEST_LABEL) for label in labels]
    lines = sum(label.count("\n") + 1 for label in labels) / columns
    figure.set_figheight(height + 0.24 * lines)
    add_legend(figure, handles, labels, loc="outside lower center", ncols=columns)
    return figure


def _tell(heading, digits, curves, place):
    """Where the lines of a panel begin and end."""
    is_loss = "loss" in heading
    ends = sorted(curves, key=lambda one: one[-1][-1][1], reverse=not is_loss)
    what, percent, _ = heading.partition(" (%)")
    labels = [label for label, *_ in ends]
    paths = [
        f"from {points[0][1]:.{digits}f} to {points[-1][1]:.{digits}f}"
        f"{' %' if percent else ''} after {points[-1][0]:,g} {place}s"
        for *_, points in ends
    ]
    if len(ends) == 1:
        return f"{what.capitalize()}: {labels[0]} goes {paths[0]}."
    first, last = ("lowest", "highest") if is_loss else ("highest", "lowest")
    return (
        f"{what.capitalize()} of {len(ends)} lines: {labels[0]} ends {first}, "
        f"{paths[0]}; {labels[-1]} ends {last}, {paths[-1]}."
    )
