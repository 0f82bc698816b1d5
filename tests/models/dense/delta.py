"""The delta rule, Schlag, Irie and Schmidhuber 2021, equations 20 to 25."""

import numpy as np

from tests.models.dense.linear import features


def kernel(drawn):
    """Answers to a unit value at each key, by the rule, position after position.

    vbar = W phi(k), W += beta (v - vbar) phi(k)^T, out = W phi(q), with attention
    normalisation divided by z phi(q), where z adds up phi(k) (equations 26 and 27).
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
    for j, value in enumerate(np.eye(length)):
        found = np.einsum("bhmf,bhf->bhm", memory, keys[:, :, j])
        written = strengths[:, :, j, None] * (value - found)
        memory = memory + written[..., None] * keys[:, :, j, None]
        answer = np.einsum("bhmf,bhf->bhm", memory, queries[:, :, j])
        if drawn.hyperparameters.get("attention_normalisation"):
            sums = keys[:, :, : j + 1] * drawn.mask[:, None, : j + 1, None]
            product = (sums.sum(axis=2) * queries[:, :, j]).sum(axis=-1, keepdims=True)
            answer = answer / np.where(product == 0, 1, product)
        rows.append(answer)
    return np.stack(rows, axis=2)
