"""The evolution made visible: how each depth of TransEvolve re-weights a text."""

from typing import NamedTuple

import numpy as np
from keras import ops

from common.errors import UserError
from evaluation.run import Run
from models.convert import with_attention
from models.layers.embedding import PADDING_ID
from models.layers.rotation_dense import RotationDense
from models.transevolve.encoder import TransEvolveEncoder


class BlockEvolution(NamedTuple):
    """One block of the encoder, for one text.

    At depth l, query i attends to key j by E_ij w^l_j / sum_k E_ik w^l_k: equation 9
    without what cancels (docs/attention.md).

    Attributes:
      attention: E = softmax(A0), (heads, queries, keys). Each row sums to 1.
      weights: w^l = n softmax(b^l), (depths, heads, keys), of n keys and the key-side
        term b^l = T^l A2 of equation 9. Their mean over keys is 1, and w^l_j = 1 for a
        key that is not re-weighted.
      expand, contract: (depths, rank), singular values of a feed-forward's two
        matrices, the largest first. In randomFF the matrix is W^l = U^l S V^l of
        equations 10 and 11, in fullFF the dense kernel of equation 3.
    """

    attention: np.ndarray
    weights: np.ndarray
    expand: np.ndarray
    contract: np.ndarray

    @property
    def mean_attention(self) -> np.ndarray:
        """Mean of E over heads, (queries, keys)."""
        return self.attention.mean(axis=0)

    @property
    def mean_weights(self) -> np.ndarray:
        """Mean of w^l over heads, (depths, keys)."""
        return self.weights.mean(axis=1)


class Evolution(NamedTuple):
    """What an encoder does to a text.

    Attributes:
      tokens: names of the tokens that the model sees, padding apart.
      blocks: in their order.
      rotations: whether the feed-forward is randomFF.
    """

    tokens: list[str]
    blocks: list[BlockEvolution]
    rotations: bool


def evolution(run: Run, text: str) -> Evolution:
    """Follows a text through the self-attention of a trained encoder.

    Args:
      run: of a model of TransEvolve.
      text: cut where the run's model cuts it.

    Raises:
      UserError: if the run is none of TransEvolve with a softmax, or the text has no
        token.
    """
    model = factored_model(run)
    # Bytes that are not UTF-8 reach a flag as surrogates.
    encoded = text.encode(errors="surrogateescape")
    ids = run.text_model.outputs("encode", [encoded])[0]["ids"]
    real = ids != PADDING_ID
    if not text.strip() or not real.any():
        (answer,) = run.predict([encoded])
        if error := getattr(answer, "error", ""):
            raise UserError(f"--text: {error}")
        raise UserError(
            f"--text: expected a text with tokens of the model, found {text[:50]!r}"
        )
    x, evolved = model.embedding(ids[None]), []
    for block in model.encoder.layers:
        evolved.append(_follow(block, x, real))
        x = block(x, real[None], training=False)
    rotations = run.config.model.feed_forward == "rotation"
    return Evolution(run.tokenizer.names(ids[real]), evolved, rotations)


def factored_model(run: Run):
    """The run's model in the form whose state has E and b^l.

    Raises:
      UserError: if the run is none of TransEvolve with a softmax.
    """
    is_transevolve = isinstance(getattr(run.model, "encoder", None), TransEvolveEncoder)
    name = run.config.model.attention.name if is_transevolve else None
    if name not in ("factored", "literal"):
        raise UserError(
            f"--workdir={run.workdir}: expected a TransEvolve run with a softmax, "
            f"found {run.config.variant}"
        )
    return run.model if name == "factored" else with_attention(run.model, "factored")


def _follow(block, x, real):
    """The `BlockEvolution` of a block's input; of its positions `real` are tokens."""
    state = block.attention(x, x, real[None], training=False)
    attention = _numpy(state.parts[0])[0][:, real][:, :, real]
    attention /= attention.sum(axis=-1, keepdims=True)  # a padded key had a share
    biases = key_biases(state, block)[..., real]
    weights = _numpy(ops.softmax(biases, axis=-1)) * real.sum()
    layers = block.feed_forwards
    expand = np.stack([_singular_values(layer.expand) for layer in layers])
    contract = np.stack([_singular_values(layer.contract) for layer in layers])
    return BlockEvolution(attention, weights, expand, contract)


def key_biases(state, block) -> np.ndarray:
    """Gives b^l of a text, (depths, heads, keys), of each depth's first read.

    A depth's step may take several.
    """
    reads = list(state.reads.values())[:: len(block.offsets)]
    return np.stack([_numpy(read.biases)[0, :, :, 0] for read in reads])


def _singular_values(dense):
    kernel = dense.kernel() if isinstance(dense, RotationDense) else dense.kernel
    return np.linalg.svd(_numpy(kernel), compute_uv=False)


def _numpy(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float32"))
