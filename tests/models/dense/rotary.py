"""Queries or keys turned by their positions, Su et al. 2021, equations 14 and 15."""

import numpy as np


def rotated(vectors):
    """R_m x_m of vectors (batch, heads, n, size).

    The two numbers of a pair lie half a vector apart, where the paper has them side by
    side: another order of the learned columns of Wq and Wk, the same for both.
    """
    half = vectors.shape[-1] // 2
    turned = np.zeros_like(vectors)
    for position, pair in np.ndindex(vectors.shape[2], half):
        angle = position * 10_000 ** (-pair / half)
        x, y = vectors[:, :, position, pair], vectors[:, :, position, half + pair]
        turned[:, :, position, pair] = x * np.cos(angle) - y * np.sin(angle)
        turned[:, :, position, half + pair] = y * np.cos(angle) + x * np.sin(angle)
    return turned
