"""Rotary positions, and the sines and cosines that positions are made of."""

import numpy as np
from keras import ops


def rotated(x, positions):
    """Rotary positions (Su et al. 2021): pairs of numbers, turned by their position.

    The product of a rotated query and a rotated key depends on their distance alone.

    Args:
      x: (batch, heads, length, size), of an even size. A pair is a number of the first
        half and one of the second.
      positions: (length,).
    """
    half = x.shape[-1] // 2
    sine, cosine = sines_and_cosines(positions, half, x.dtype)
    first, second = x[..., :half], x[..., half:]
    turned = first * cosine - second * sine, first * sine + second * cosine
    return ops.concatenate(turned, axis=-1)


def sines_and_cosines(positions, count, dtype):
    """Of angles p / 10,000^(c / count), each (positions, count).

    That is how papers have them (Vaswani et al. 2017, section 3.5). The positions that
    TransEvolve's authors add to embeddings have other rates.
    """
    rates = 1e4 ** (-np.arange(count) / count)
    angles = ops.cast(positions, "float32")[:, None] * rates.astype("float32")
    return ops.cast(ops.sin(angles), dtype), ops.cast(ops.cos(angles), dtype)
