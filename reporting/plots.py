"""Plots of measured rows, as PNG files."""

import itertools
import math

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter

from reporting.palette import COLOURS, DASHES, MARKERS, look
from reporting.png import drawable, write_png

LABELS = {
    "seconds_per_1000_tokens": "seconds per 1,000 tokens",
    "ratio_to_transformer": "speed over the Transformer",
    "peak_memory_mb": "peak memory of the process (MB)",
    "perplexity": "perplexity of a token",
}
# Lengths that span more than this are drawn by their logarithms.
WIDE = 4
# Points from one name to the next below it.
NAME_HEIGHT = 10


def by_length(rows: list[dict], field: str) -> dict[str, list[tuple]]:
    """(length, value) of a field by model, sorted; without models that have none."""
    lines = {}
    for row in rows:
        lines.setdefault(row["model"], [])
        if field in row:
            lines[row["model"]].append((row["length"], row[field]))
    return {model: sorted(points) for model, points in lines.items() if points}


def add_grid(axis) -> None:
    """Adds a faint grid, and takes away the frame's upper and right lines."""
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def add_legend(figure, *lines, **place) -> None:
    """Adds a legend whose lines are so long that their dashes are seen.

    Args:
      figure: of matplotlib.
      *lines: their handles and labels; without them, all that have a label.
      **place: fields of `Figure.legend`, such as `loc`.
    """
    figure.legend(*lines, frameon=False, handlelength=4, **place)


def plot_against_length(
    rows: list[dict],
    fields: list[str],
    title: str,
    path,
    axis_title: str = "length (tokens)",
) -> None:
    """Draws a panel for each field, with a line for each model, its name at the end.

    Args:
      rows: with `model`, `length` and the fields; rows without one are left out.
      fields: keys of `LABELS`.
      title: of the whole picture.
      path: where to write the PNG, a `Path`.
      axis_title: of the axis of lengths.
    """
    figure = Figure(figsize=(8, 0.6 + 3.6 * len(fields)), layout="constrained")
    axes = figure.subplots(len(fields), 1, squeeze=False, sharex=True)[:, 0]
    lengths = sorted({row["length"] for row in rows})
    for axis, field in zip(axes, fields, strict=True):
        lines = by_length(rows, field)
        for model, points in lines.items():
            drawn = look(model)._asdict()
            axis.plot(*zip(*points, strict=True), markersize=4, **drawn)
        if lengths[-1] > WIDE * lengths[0]:
            axis.set_xscale("log", base=2)
        _mark(axis, lengths)
        axis.margins(y=0.1)
        axis.set_ylabel(LABELS[field])
        axis.set_ylim(bottom=0)
        _name(figure, axis, lines)
    axes[-1].set_xlabel(axis_title)
    figure.suptitle(title, fontsize=11)
    write_png(figure, path)


def plot_errors(rows: list[dict], path) -> None:
    """Draws errors of random features by their number, beside 1 / sqrt of it.

    Args:
      rows: of `benchmarks.features`.
      path: where to write the PNG, a `Path`.
    """
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axis = figure.subplots()
    lines = _draw(axis, rows, "vectors", "num_features", "error")
    counts = sorted({row["num_features"] for row in rows})
    first = max(points[0][1] for points in lines.values())
    law = [first * math.sqrt(counts[0] / count) for count in counts]
    axis.plot(counts, law, color="black", linestyle=":", label="as 1 / √m")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    _mark(axis, counts)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set(xlabel="random features (m)", ylabel="relative error of the weights")
    axis.legend(frameon=False)
    write_png(figure, path)


def plot_retrieval(
    rows: list[dict], published: list[dict], path, is_logarithmic: bool
) -> None:
    """Draws losses by the number of symbols, the published ones dotted beside.

    Args:
      rows: of `reproduction.retrieval`.
      published: with `memory`, `symbols` and `loss`; those of memories without a row
        are not drawn.
      path: where to write the PNG, a `Path`.
      is_logarithmic: whether the axis of losses is. If not, it ends at 0.6.
    """
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axis = figure.subplots()
    names = _draw(axis, rows, "memory", "symbols", "loss")
    published = [row for row in published if row["memory"] in names]
    dotted = {"linestyle": ":", "marker": "", "label": "_"}
    _draw(axis, published, "memory", "symbols", "loss", names, **dotted)
    axis.plot([], [], color="black", linestyle=":", label="published")
    _mark(axis, sorted({row["symbols"] for row in [*rows, *published]}))
    axis.set(xlabel="keys, and as many values", ylabel="half the squared error")
    if is_logarithmic:
        axis.set_yscale("log", nonpositive="clip")
        axis.set_ylim(bottom=5e-5)
    else:
        axis.set_ylim(0, 0.6)  # 0.5 is what nothing read gives
    add_legend(figure, loc="outside right upper")
    write_png(figure, path)


def plot_recall(rows: list[dict], path) -> None:
    """Draws accuracy by what is kept, a panel for each model and length.

    Args:
      rows: of `reproduction.tables.recall`.
      path: where to write the PNG, a `Path`.
    """
    lengths = sorted({row["length"] for row in rows})
    models, names = (
        list(dict.fromkeys(row[field] for row in rows))
        for field in ("model", "attention")
    )
    size = 3 + 3.6 * len(lengths), 0.6 + 3.2 * len(models)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(
        len(models), len(lengths), squeeze=False, sharex="col", sharey=True
    )
    for (model, length), axis in zip(
        itertools.product(models, lengths), axes.flat, strict=True
    ):
        drawn = [
            row for row in rows if (row["model"], row["length"]) == (model, length)
        ]
        _draw(axis, drawn, "attention", "kib", "accuracy", names)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_locator(LogLocator(2))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set(ylim=(0, 1.05), title=f"{model}, {length:,} tokens")
        add_grid(axis)
    for axis in axes[:, 0]:
        axis.set_ylabel("share of values recalled")
    for axis in axes[-1]:
        axis.set_xlabel("KiB kept of a text")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    add_legend(figure, handles, labels, loc="outside right upper")
    write_png(figure, path)


def plot_losses(lines: dict[str, list[tuple[float, float]]], path) -> None:
    """Draws validation losses against minutes.

    Args:
      lines: {model: [(minutes, loss), ...]}.
      path: where to write the PNG, a `Path`.
    """
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axis = figure.subplots()
    for model, points in lines.items():
        drawn = look(model)._asdict()
        axis.plot(*zip(*points, strict=True), label=drawable(model), **drawn)
    axis.set(xlabel="minutes of training updates", ylabel="validation loss (nats)")
    axis.set_xlim(left=0)
    add_grid(axis)
    add_legend(figure, loc="outside lower center", ncols=2)
    write_png(figure, path)


def _draw(axis, rows, name, x, y, names=(), **look):
    """Draws a line for each name, of the rows that have a y; returns {name: points}.

    Args:
      names: those that come first, with or without rows.
    """
    lines = {label: [] for label in names}
    for row in rows:
        points = lines.setdefault(row[name], [])
        if row[y] is not None:
            points.append((row[x], row[y]))
    looks_of_all = itertools.product(enumerate(DASHES), enumerate(COLOURS))
    for (label, points), ((again, dashes), (place, color)) in zip(
        lines.items(), looks_of_all, strict=False
    ):
        marker = MARKERS[(place + 3 * again) % len(MARKERS)]
        looks = {"color": color, "linestyle": dashes, "marker": marker, "label": label}
        looks |= look
        axis.plot([x for x, _ in points], [y for _, y in points], **looks)
    return lines


def _mark(axis, places):
    """Ticks at these places, or at some of many, and a grid."""
    axis.xaxis.set_major_locator(FixedLocator(places, nbins=10))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.xaxis.set_minor_locator(NullLocator())
    add_grid(axis)


def _name(figure, axis, lines):
    """Writes each line's name at its end, none upon another."""
    low, high = axis.get_ylim()
    # The axis' share of the figure, about.
    points = 0.8 * 72 * figure.get_figheight() / len(figure.axes) / (high - low)
    ends = {model: line[-1] for model, line in lines.items()}
    taken = {}
    for model, (x, y) in sorted(ends.items(), key=lambda end: end[1][1]):
        place = max(y * points, taken.get(x, -math.inf) + NAME_HEIGHT)
        taken[x] = place
        axis.annotate(
            drawable(model),
            (x, y),
            (7, place - y * points),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=look(model).text_color,
            parse_math=False,
        )
