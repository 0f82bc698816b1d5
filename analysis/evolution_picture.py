"""The evolution of a text as a picture, and in words."""

import textwrap

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from analysis.evolution import Evolution
from reporting.png import drawable, write_png

MAX_TOKENS = 40  # the names of more would overlap


def draw(evolution: Evolution, title: str, path) -> str:
    """Draws a row of panels for each block, as a PNG file.

    These are E, the mean of w^l over heads, w^l of each head, and the singular values
    of the feed-forward. Of a long text the first `MAX_TOKENS` are drawn, as the title
    then says.

    Args:
      title: of the whole picture.
      path: where to write it, a `Path`.

    Returns:
      What it shows, in sentences, for those who do not see it.
    """
    tokens, total = evolution.tokens[:MAX_TOKENS], len(evolution.tokens)
    cut = ""
    if total > len(tokens):
        cut = f"The first {len(tokens)} of {total:,} tokens."
    names = [drawable(name) for name in tokens]
    names = [name if len(name) <= 12 else f"{name[:11]}…" for name in names]
    blocks = [_first(block, len(tokens)) for block in evolution.blocks]
    scale = _color_scale(np.stack([block.weights for block in blocks]))
    kind = "$U^l Σ V^l$" if evolution.rotations else "dense kernel"
    figure = Figure(figsize=(14, 0.5 + 5 * len(blocks)), layout="constrained")
    title = f"{textwrap.fill(title, 110)}\n{cut}".strip()
    figure.suptitle(title, fontsize=13, parse_math=False)
    rows = figure.subfigures(len(blocks), 1, squeeze=False)[:, 0]
    for number, (row, block) in enumerate(zip(rows, blocks, strict=True), start=1):
        left, middle, right = row.subfigures(1, 3, width_ratios=(5.5, 5.6, 2.6))
        start, (mean, heads) = left.subplots(), middle.subplots(2, height_ratios=(1, 3))
        which = f"block {number}: " if len(blocks) > 1 else ""
        start.set_title(f"{which}initial attention E, mean of heads")
        _draw_attention(start, block.mean_attention, names)
        _draw_weights(mean, heads, block, names, scale)
        right.suptitle("feed-forward by depth")
        panels = zip(right.subplots(2), ("expand", "contract"), strict=True)
        for axis, name in panels:
            axis.set_title(f"{name}: {kind}", fontsize=10)
            _draw_spectra(axis, getattr(block, name))
    write_png(figure, path, dpi=100)
    described = [
        f"Block {number}: {_describe(block, tokens)}"
        for number, block in enumerate(blocks, start=1)
    ]
    return " ".join([cut, *described]).strip()


def _first(block, count):
    attention, weights = block.attention[:, :count, :count], block.weights[..., :count]
    return block._replace(attention=attention, weights=weights)


def _color_scale(weights):
    """Around 1, wide enough for all but a few that would make the others pale."""
    usual = np.quantile(np.abs(np.log(np.maximum(weights, 1e-9))), 0.95)
    root = next((x for x in (1.1, 1.2, 1.5, 2, 3, 4) if 2 * np.log(x) >= usual), 6)
    return LogNorm(root**-2, root**2, clip=True)


def _draw_attention(axis, attention, names):
    image = axis.imshow(attention, cmap="Blues", vmin=0)
    axis.set_xticks(range(len(names)), names, rotation=90, **_small(names))
    axis.set_yticks(range(len(names)), names, **_small(names))
    axis.set(xlabel="key", ylabel="query")
    axis.figure.colorbar(image, ax=axis, shrink=0.6, fraction=0.05, pad=0.01)


def _draw_weights(mean_axis, heads_axis, block, names, scale):
    depths, heads, count = block.weights.shape
    by_head = np.swapaxes(block.weights, 0, 1).reshape(heads * depths, count)
    shared = {"cmap": "RdBu_r", "norm": scale, "aspect": "auto"}
    image = mean_axis.imshow(block.mean_weights, **shared)
    mean_axis.set_title("re-weighting $w^l$ of the keys, mean of heads")
    mean_axis.set_yticks(range(depths), range(1, depths + 1), fontsize=7)
    mean_axis.set(xticks=[], ylabel="depth")
    heads_axis.imshow(by_head, **shared)
    heads_axis.set_title(f"each head, its depths 1 (top) to {depths} (bottom)")
    for head in range(1, heads):
        heads_axis.axhline(head * depths - 0.5, color="black", linewidth=0.8)
    middles = np.arange(heads) * depths + (depths - 1) / 2
    heads_axis.set_yticks(middles, range(1, heads + 1), fontsize=7)
    heads_axis.set_xticks(range(count), names, rotation=90, **_small(names))
    heads_axis.set(xlabel="key", ylabel="head")
    root = scale.vmax**0.5
    both = [mean_axis, heads_axis]
    bar = mean_axis.figure.colorbar(image, ax=both, shrink=0.6, fraction=0.05)
    bar.set_label("1 = not re-weighted")
    bar.set_ticks(
        [scale.vmin, 1 / root, 1, root, scale.vmax],
        labels=[f"÷{root**2:.3g}", f"÷{root:g}", "1", f"×{root:g}", f"×{root**2:.3g}"],
    )
    bar.minorticks_off()


def _small(names):
    return {"fontsize": min(8, 240 / len(names)), "parse_math": False}


def _draw_spectra(axis, spectra):
    colors = colormaps["viridis"](np.linspace(0, 0.9, len(spectra)))
    for depth, (values, color) in enumerate(zip(spectra, colors, strict=True), start=1):
        axis.plot(range(1, len(values) + 1), values, color=color, label=depth)
    axis.set(xlabel="rank", ylabel="singular value")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend(title="depth", fontsize=7, ncols=-(-len(spectra) // 3))


def _describe(block, tokens):
    mean, last = block.mean_weights, len(block.weights)
    ranges = ", and ".join(
        f"between {mean[i].min():.2g} and {mean[i].max():.2g} at depth {i + 1}"
        for i in sorted({0, last - 1})
    )
    lowest = np.argsort(mean[-1], kind="stable")
    most, least = (
        " and ".join(f"“{tokens[i]}” (token {i + 1}, ×{mean[-1, i]:.2g})" for i in two)
        for two in (lowest[::-1][:2], lowest[:2])
    )
    return (
        f"the mean weight of a token lies {ranges}, where 1 is not re-weighted. "
        f"Depth {last} weighs {most} the most, and {least} the least."
    )
