"""softmax(B) without queries or keys, Tay et al. 2020, sections 3.1 to 3.4."""

import numpy as np

from tests.models.dense import softmax


def kernel(drawn):
    """B of a variant, for keys that are visible."""
    scores = SCORES[drawn.hyperparameters["kind"]](drawn)
    scores = np.broadcast_to(scores, (*drawn.queries.shape[:3], drawn.keys.shape[2]))
    return softmax(scores, drawn.visible())


def _random(drawn):
    """R, a learned matrix for each head: section 3.2."""
    length = drawn.keys.shape[2]
    return drawn.weights["scores"][:, :length, :length]


def _random_factored(drawn):
    """R1 R2^T: section 3.3."""
    length = drawn.keys.shape[2]
    rows, columns = (
        drawn.weights[f"{side}"][:, :length] for side in ("rows", "columns")
    )
    return rows @ columns.swapaxes(-1, -2)


def _dense(drawn):
    """W2 relu(W1 x_i): equation 1."""
    hidden = np.einsum("bnd,hdf->bhnf", drawn.x, drawn.weights["hidden_kernel"])
    hidden = np.maximum(hidden + drawn.weights["hidden_bias"][:, None], 0)
    scores = hidden @ drawn.weights["scores_kernel"]
    scores = scores + drawn.weights["scores_bias"][:, None]
    return scores[..., : drawn.keys.shape[2]]


def _dense_factored(drawn):
    """F_A(x_i) and F_B(x_i), repeated until they have as many numbers as keys."""
    a, b = (
        np.einsum("bnd,hdf->bhnf", drawn.x, drawn.weights[name]) for name in ("a", "b")
    )
    scores = a[..., :, None] * b[..., None, :]
    return scores.reshape(*a.shape[:3], -1)[..., : drawn.keys.shape[2]]


def _mixture(drawn):
    """Shares alpha, which sum to 1, of scores: equation 5."""
    shares = np.exp(drawn.weights["shares"])
    shares = shares / shares.sum(axis=0)
    softmax_scores = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)
    return shares[0] * _random(drawn) + shares[1] * softmax_scores


SCORES = {
    "random": _random,
    "random-factored": _random_factored,
    "dense": _dense,
    "dense-factored": _dense_factored,
    "mixture": _mixture,
}
