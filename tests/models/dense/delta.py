"""The delta rule, Schlag, Irie and Schmidhuber 2021, equations 20 to 25."""

import numpy as np

from tests.models.dense.linear import features


def kernel(drawn):
    """Answers to a unit value at each key, by the rule, position after position.

    vbar = W phi(k), W += beta (v - vbar) phi(k)^T, out = W phi(q).
    W is (batch, heads, m, f) here: the values of all keys are the columns of an
    identity.
    """
    queries, keys = features(drawn, normalised=True)
    strengths = 1 / (1 + np.exp(-drawn.x @ drawn.weights["strength_kernel"]))
    strengths = strengths * drawn.hyperparameters["largest_strength"]
    strengths = np.einsum("bmh->bhm", strengths * drawn.mask[..., None])
    batch, heads, length, _ = keys.shape
    memory = np.zeros((batch, heads, length, keys.shape[-1]))
    rows = []
    for j in range(length):
        value = np.eye(length)[j]
        found = np.einsum("bhmf,bhf->bhm", memory, keys[:, :, j])
        written = strengths[:, :, j, None] * (value - found)
        memory = memory + written[..., None] * keys[:, :, j, None]
        rows.append(np.einsum("bhmf,bhf->bhm", memory, queries[:, :, j]))
    return np.stack(rows, axis=2)
