"""softmax(S) of scores that no key is needed for, Tay et al. 2020, section 3."""

import numpy as np

from tests.models.dense import masked_softmax


def kernel(drawn):
    """A softmax over keys that are visible; a mixture is one of scores.

    The shares alpha of a mixture are positive and their sum is 1 (equation 5).
    """
    scores = SCORES[drawn.hyperparameters["scores"]](drawn)
    if drawn.hyperparameters["mixture"]:
        shares = np.exp(drawn.weights["shares"])  # (2, heads, 1, 1)
        shares = shares / shares.sum(axis=0)
        products = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)
        scores = shares[0] * scores + shares[1] * products
    return masked_softmax(scores, drawn.visible())


def _random(drawn):
    """R, a learned matrix for each head: section 3.2."""
    length = drawn.keys.shape[2]
    return drawn.weights["scores"][:, :length, :length]


def _factorised_random(drawn):
    """R1 R2^T."""
    length = drawn.keys.shape[2]
    rows = drawn.weights["rows"][:, :length]
    columns = drawn.weights["columns"][:, :length]
    return rows @ columns.swapaxes(-1, -2)


def _dense(drawn):
    """W2 relu(W1 x_i) + b, where W1 makes the query of a head: equation 1."""
    hidden = np.maximum(drawn.queries, 0)
    scores = hidden @ drawn.weights["scores_kernel"]
    scores = scores + drawn.weights["scores_bias"][:, None]
    return scores[..., : drawn.keys.shape[2]]


def _factorised_dense(drawn):
    """A_i of a numbers and B_i of b, tiled until each key has a pair of its own.

    Tiled alike, as printed, few pairs would differ. So that no values repeat within a
    block, one is repeated b times, number by number, and the other tiled a times.
    """
    hidden = np.maximum(drawn.queries, 0)
    a, b = (
        hidden @ drawn.weights[f"{name}_kernel"]
        + drawn.weights[f"{name}_bias"][:, None]
        for name in "ab"
    )
    repeated = np.repeat(a, b.shape[-1], axis=-1)
    tiled = np.tile(b, a.shape[-1])
    return (repeated * tiled)[..., : drawn.keys.shape[2]]


SCORES = {
    "random": _random,
    "factorised-random": _factorised_random,
    "dense": _dense,
    "factorised-dense": _factorised_dense,
}
