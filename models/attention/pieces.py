"""Texts in pieces of one size."""

from keras import ops


def cut(x, count, size, filler=0):
    """Cuts (batch, heads, length, width) into (batch, heads, count, size, width).

    Args:
      filler: at positions after the text's.
    """
    batch, heads, length, width = ops.shape(x)
    missing = count * size - length
    if not isinstance(missing, int) or missing:
        end = ops.full((batch, heads, missing, width), filler, x.dtype)
        x = ops.concatenate([x, end], axis=2)
    return ops.reshape(x, (batch, heads, count, size, width))


def joined(x, length):
    """Inverse of `cut`: the first `length` positions."""
    batch, heads, count, size, width = ops.shape(x)
    return ops.reshape(x, (batch, heads, count * size, width))[:, :, :length]
