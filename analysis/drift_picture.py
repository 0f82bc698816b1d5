"""Drift as a picture, and as a table."""

import numpy as np
from matplotlib.figure import Figure

from analysis.drift import ALONE, EVOLVED, FITTED, Drift
from common.paths import make_path
from reporting.palette import COLOURS, MARKERS
from reporting.png import write_png
from reporting.tables import markdown_table

PLACES = {EVOLVED: 0, ALONE: 1, FITTED: 2}


def draw(drift: Drift, title: str, path) -> str:
    """Draws a panel for each block, as a PNG file.

    A line is the mean over heads and texts. The band about it has all heads' means.

    Args:
      title: of the whole picture.
      path: where to write it.

    Returns:
      A table in Markdown, the mean distance of each kind of weights by block and depth.
    """
    by_head = {name: x.mean(axis=-1) for name, x in drift.distances.items()}
    blocks, depths, _ = next(iter(by_head.values())).shape
    figure = Figure(figsize=(1 + 5 * blocks, 4), layout="constrained")
    figure.suptitle(title, fontsize=11, parse_math=False)
    axes = figure.subplots(1, blocks, sharey=True, squeeze=False)[0]
    for number, axis in enumerate(axes):
        for name, values in by_head.items():
            color, marker = COLOURS[PLACES[name]], MARKERS[PLACES[name]]
            places, of_block = range(1, depths + 1), values[number]
            axis.plot(
                places, of_block.mean(axis=1), color=color, marker=marker, label=name
            )
            ends = of_block.min(axis=1), of_block.max(axis=1)
            axis.fill_between(places, *ends, color=color, alpha=0.12, linewidth=0)
        axis.set(xlabel="depth", xticks=list(range(1, depths + 1)))
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if blocks > 1:
            axis.set_title(f"block {number + 1}", fontsize=10)
    axes[0].set_ylabel("distance from attention of the depth's input")
    axes[0].legend(fontsize=8, loc="lower right")
    write_png(figure, make_path(path, "--output"))
    rows = [
        [
            str(block + 1),
            str(depth + 1),
            *(f"{x[block, depth].mean():.3f}" for x in by_head.values()),
        ]
        for block, depth in np.ndindex(blocks, depths)
    ]
    return markdown_table(["block", "depth", *by_head], rows)
