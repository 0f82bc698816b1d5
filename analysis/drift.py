"""How far evolved attention drifts from attention that is computed anew.

Equation 9 takes the scores A0 of a block's input X^0, corrected by T^l, for those that
depth l would have of its own input X^l. The paper expects the error to grow with the
depth, and does not measure it (section 6, "Different degrees of temporal evolution").
"""

import numpy as np
from keras import ops
from matplotlib.figure import Figure

from analysis.evolution import factored_model, key_biases
from common.errors import UserError
from common.progress import progress_bar
from evaluation.run import Run
from models.layers.embedding import PADDING_ID
from models.transformer.encoder import TransformerEncoder
from reporting.palette import COLOURS, MARKERS
from reporting.png import write_png
from reporting.tables import markdown_table

# What stands for the attention weights of X^l, as a picture says it.
EVOLVED, ALONE, FITTED = "E and T^l", "E alone", "E and the best w"
# The colours and markers of a picture, as the palette numbers them.
PLACES = {EVOLVED: 0, ALONE: 1, FITTED: 2}
FITTING_STEPS = 500


def drift(run: Run, texts: int = 64) -> dict[str, np.ndarray]:
    """Measures the drift in a trained encoder.

    A distance is |R' - R| / |R|, in Frobenius' norm over a text's queries and keys. R
    has the weights that a block's or a layer's own kernels give of X^l.

    Args:
      run: of TransEvolve with a softmax, or of a Transformer with one.
      texts: of the validation data, the first ones.

    Returns:
      {what stands for R: distances, (blocks, depths, heads, texts)}. `EVOLVED` is the
      E_ij w^l_j of equation 9, with rows that sum to one; a Transformer has none.
      `ALONE` is E, of the block's input, or of the first layer's. `FITTED` is E_ij w_j
      with the w of which the rows have the least divergence from R's. It says how near
      any re-weighting of keys may come.

    Raises:
      UserError: if the run is none of these, or its data cannot be had.
    """
    measure = _of_transevolve
    if isinstance(getattr(run.model, "encoder", None), TransformerEncoder):
        measure, model = _of_transformer, run.model
        config = run.config.model
        if config.attention.name != "softmax" or config.get("residuals"):
            expected = "a softmax and usual residuals"
            raise UserError(
                f"--workdir={run.workdir}: expected a Transformer with {expected}, "
                f"found {run.config.variant}"
            )
    else:
        model = factored_model(run)
    if run.config.model.get("positions") not in (None, "learned", "none"):
        raise UserError(
            f"--workdir={run.workdir}: expected positions in the embedding alone, "
            f"found model.positions={run.config.model.positions}"
        )
    by_text = []
    with progress_bar(total=texts, desc="drift", unit=" texts") as bar:
        for ids in _texts(run, texts):
            by_text.append(measure(model, ids[None]))
            bar.update()
    return {
        name: np.stack([one[name] for one in by_text], axis=-1) for name in by_text[0]
    }


def draw(distances: dict[str, np.ndarray], title: str, path) -> str:
    """Draws a panel for each block, as a PNG file.

    A line is the mean over heads and texts. The band about it has all heads' means.

    Args:
      distances: see `drift`.
      title: of the whole picture.
      path: where to write it, a `Path`.

    Returns:
      A table in Markdown, the mean distance of each kind of weights by block and depth.
    """
    by_head = {name: x.mean(axis=-1) for name, x in distances.items()}
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
    write_png(figure, path)
    rows = [
        [
            str(block + 1),
            str(depth + 1),
            *(f"{x[block, depth].mean():.3f}" for x in by_head.values()),
        ]
        for block, depth in np.ndindex(blocks, depths)
    ]
    return markdown_table(["block", "depth", *by_head], rows)


def _texts(run, count):
    """Their ids, without padding."""
    for batch in run.task.evaluation_batches("validation").for_evaluation():
        for ids in np.asarray(batch["inputs"]):
            real = ids[ids != PADDING_ID]
            if len(real) and count > 0:
                count -= 1
                yield real
        if not count:
            return


def _of_transevolve(model, ids):
    x, measured = model.embedding(ids), []
    for block in model.encoder.layers:
        state = block.attention(x, x, training=False)
        start, depths = _rows(state), []
        biases = key_biases(state, block)
        for depth in range(block.num_depths):
            anew = block.attention(x, x, training=False)
            exact = _weighted(_rows(anew), key_biases(anew, block)[depth])
            depths.append(
                {
                    EVOLVED: distance(_weighted(start, biases[depth]), exact),
                    **_without_evolution(start, exact),
                }
            )
            x = block.move(depth, x, state.read)
        x = block.output_norm(x)
        measured.append(depths)
    return _stacked(measured)


def _of_transformer(model, ids):
    x, rows = model.embedding(ids), []
    for layer in model.encoder.layers:
        seen = layer.attention_input(x)
        inputs, *_ = layer.attention.prepared(seen, seen)
        rows.append(_numpy(layer.attention.operator.kernel(inputs))[0])
        x = layer(x, training=False)
    return _stacked([[_without_evolution(rows[0], exact) for exact in rows]])


def _without_evolution(start, exact):
    return {
        ALONE: distance(start, exact),
        FITTED: distance(fitted(start, exact), exact),
    }


def _stacked(measured):
    return {
        name: np.array([[depth[name] for depth in block] for block in measured])
        for name in measured[0][0]
    }


def _rows(state):
    """E of a state, (heads, queries, keys), rows that sum to one."""
    kernel = _numpy(state.parts[0])[0]
    return kernel / kernel.sum(axis=-1, keepdims=True)


def _weighted(rows, biases):
    weights = np.exp(biases - biases.max(axis=-1, keepdims=True))
    weighted = rows * weights[:, None]
    return weighted / weighted.sum(axis=-1, keepdims=True)


def distance(rows, exact) -> np.ndarray:
    """|R' - R| / |R| of each head, (heads,), of (heads, queries, keys)."""
    difference = np.linalg.norm(rows - exact, axis=(-2, -1))
    return difference / np.linalg.norm(exact, axis=(-2, -1))


def fitted(rows, exact) -> np.ndarray:
    """E_ij w_j, rows summing to one, with the least divergence of R from it.

    Each step of iterative scaling multiplies w_j by what key j receives in R, over what
    it receives now. The sum of the divergences of rows never grows.
    """
    received = exact.sum(axis=-2)
    for _ in range(FITTING_STEPS):
        weights = received / np.maximum(rows.sum(axis=-2), 1e-30)
        rows = rows * weights[:, None]
        rows = rows / rows.sum(axis=-1, keepdims=True)
    return rows


def _numpy(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float32")).astype("float64")
