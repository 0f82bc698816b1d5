"""The delta rule, Schlag, Irie and Schmidhuber 2021, equations 20 to 25."""

import numpy as np

from tests.models.dense.linear import FEATURES


def kernel(drawn):
    """Answers to a unit value at each key, by the rule, position after position.

    vbar = W phi(k), W += beta (v - vbar) phi(k)^T, out = W phi(q), with features that
    sum to one (section 4.2). W is (batch, heads, m, f) here: the values
    of all keys are the columns of an identity.
    """
    features = FEATURES[drawn.hyperparameters["feature_map"]]
    queries, keys = (
        _sum_normalised(features(x * drawn.scale**0.5, drawn))
        for x in (drawn.queries, drawn.keys)
    )
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


def _sum_normalised(features):
    total = features.sum(axis=-1, keepdims=True)
    return features / np.where(total > 0, total, 1)
