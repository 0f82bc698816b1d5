"""What relative positions add to scores, number by number."""

import numpy as np


def scores(drawn):
    """By distance, from -16 to 16, a number (T5, without buckets) or a product of a
    query and a vector (Shaw et al. 2018, equation 4). Or terms b, c and d of Dai et al.
    2019, section 3.3, by any distance."""
    batch, heads, length, _ = drawn.queries.shape
    added = np.zeros((batch, heads, length, length))
    for i in range(length):
        for j in range(i + 1 if drawn.causal else length):
            place = max(-16, min(16, j - i)) + 16
            if "relative_bias" in drawn.weights:
                added[:, :, i, j] = drawn.weights["relative_bias"][:, place]
            if "relative_keys" in drawn.weights:
                vector = drawn.weights["relative_keys"][place]
                added[:, :, i, j] = drawn.scale * drawn.queries[:, :, i] @ vector
            if "relative_kernel" in drawn.weights:
                added[:, :, i, j] = _by_sinusoids(drawn, i, j)
    return added


def _by_sinusoids(drawn, i, j):
    kernel, u, v = (
        drawn.weights[f"relative_{name}"]
        for name in ("kernel", "key_bias", "distance_bias")
    )
    half = len(kernel) // 2
    angles = (j - i) * 1e4 ** (-np.arange(half) / (half - 1))
    vector = np.concatenate([np.sin(angles), np.cos(angles)]) @ kernel
    asking = drawn.scale * drawn.queries[:, :, i] + v[:, 0]
    by_head = asking * vector.reshape(len(u), -1) + u[:, 0] * drawn.keys[:, :, j]
    return by_head.sum(axis=-1)
