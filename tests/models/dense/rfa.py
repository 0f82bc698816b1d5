"""phi(Q) phi(K)^T of sines and cosines, Peng et al. 2021, section 3."""

import numpy as np


def kernel(drawn):
    """Theorem 1 and equation 5, of queries and keys of unit length."""
    queries, keys = (
        _features(_unit(x), _vectors(drawn)) for x in (drawn.queries, drawn.keys)
    )
    return np.where(drawn.visible(), queries @ keys.swapaxes(-1, -2), 0)


def gated(drawn):
    """Equation 7: S_t = g_t S_(t-1) + (1 - g_t) phi(k_t) v_t^T, and z_t likewise."""
    scores = kernel(drawn)
    gates = drawn.x @ drawn.weights["gate_kernel"] + drawn.weights["gate_bias"]
    gates = 1 / (1 + np.exp(-gates))  # (batch, n, heads)
    length = gates.shape[1]
    remembered = np.zeros_like(scores)
    for j in range(length):
        share = 1 - gates[:, j]
        for i in range(j, length):
            share = share * gates[:, i] if i > j else share
            remembered[:, :, i, j] = share
    return scores * remembered


def _vectors(drawn):
    """w = sigma w~ of normal w~ and a learned sigma."""
    return drawn.operator.vectors.astype("float64") * drawn.weights["deviation"]


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _features(x, vectors):
    angles = x @ vectors.swapaxes(-1, -2)
    features = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    return features / np.sqrt(vectors.shape[-2])
