"""phi(Q) phi(K)^T of sines and cosines, Peng et al. 2021, section 3."""

import numpy as np


def kernel(drawn):
    """Theorem 1 and equation 5, of queries and keys of unit length."""
    queries, keys = (
        _features(_unit(x), _vectors(drawn)) for x in (drawn.queries, drawn.keys)
    )
    return np.where(drawn.visible(), queries @ keys.swapaxes(-1, -2), 0)


def least(drawn):
    """What times w is the least that may be divided by, which the paper leaves open.

    An estimate's deviation is at most 1 / sqrt(2 D) with D vectors: the variance of a
    cosine, at most 1/2, by their number.
    """
    num_vectors = drawn.hyperparameters["num_vectors"]
    return np.where(drawn.visible(), 1.0, 0.0) / np.sqrt(2 * num_vectors)


def _vectors(drawn):
    """w = sigma w~ of normal w~ and a learned sigma, (heads, D, size)."""
    vectors = drawn.operator.feature_map.vectors.astype("float64")
    return vectors * drawn.weights["deviation"]


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _features(x, vectors):
    angles = x @ vectors.swapaxes(-1, -2)
    features = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    return features / np.sqrt(vectors.shape[-2])
