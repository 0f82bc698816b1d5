"""Heads and masked scores, which most mechanisms are made of."""

from keras import ops

# Added to the scores of keys that must not be seen; exp() of it is exactly zero.
MASKED = -1e9


def split_heads(x, num_heads):
    """Splits the last axis: (batch, length, width) to (batch, heads, length, -1)."""
    batch, length, width = ops.shape(x)
    x = ops.reshape(x, (batch, length, num_heads, width // num_heads))
    # Not transpose: on few rows TensorFlow (oneDNN) is slower at it.
    return ops.einsum("blhs->bhls", x)


def merge_heads(x):
    """Inverse of `split_heads`: (batch, heads, length, size) to (batch, length, -1)."""
    batch, num_heads, length, size = ops.shape(x)
    x = ops.einsum("bhls->blhs", x)
    return ops.reshape(x, (batch, length, num_heads * size))


def scaled_scores(queries, keys, causal):
    """Products of (batch, heads, length, size) queries, already scaled, and keys.

    With `causal`, keys after the query get `MASKED` added.
    """
    scores = ops.matmul(queries, ops.swapaxes(keys, 2, 3))
    if causal:
        num_queries, num_keys = ops.shape(scores)[-2:]
        future = ops.arange(num_queries)[:, None] < ops.arange(num_keys)[None, :]
        scores += MASKED * ops.cast(future, scores.dtype)
    return scores
