"""What relative positions add to scores, number by number."""

import numpy as np


def scores(drawn):
    """By distance, from -16 to 16, a number (T5, without buckets) or a product of a
    query and a vector (Shaw et al. 2018, equation 4)."""
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
    return added
