"""Heads, masked scores and their products, which most mechanisms are made of."""

from keras import ops

# Added to the scores of keys that must not be seen; exp() of it is exactly zero.
MASKED = -1e9
# Below any logarithm or bias that counts, and far above `MASKED`.
LOWEST = -1e8


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


def is_future(num_queries, num_keys):
    """Which keys come after a query, bool (queries, keys).

    The queries are at the last of the keys' positions.

    Raises:
      ValueError: if there are more queries than keys.
    """
    positions = ops.arange(num_queries) + num_earlier(num_queries, num_keys)
    return positions[:, None] < ops.arange(num_keys)[None, :]


def check_a_query_for_each_key(name, x, context):
    """Raises `ValueError`, in the name of an attention, if the lengths of (batch, n, d)
    and (batch, m, d) differ."""
    if x.shape[1] != context.shape[1]:
        raise ValueError(
            f"{name} needs a query for each key, got {x.shape[1]} queries and "
            f"{context.shape[1]} keys"
        )


def num_earlier(num_queries, num_keys):
    """Keys before the first query's own, in causal attention.

    Raises:
      ValueError: if there are more queries than keys.
    """
    earlier = num_keys - num_queries
    if isinstance(earlier, int) and earlier < 0:
        raise ValueError(
            f"causal attention needs a key for each query, got {num_queries} queries "
            f"and {num_keys} keys"
        )
    return earlier


def after_earlier(x, num_keys):
    """(batch, heads, n, size) of queries, after zeros at earlier keys' positions."""
    batch, heads, num_queries, size = ops.shape(x)
    before = num_earlier(num_queries, num_keys)
    if isinstance(before, int) and not before:
        return x
    zeros = ops.zeros((batch, heads, before, size), x.dtype)
    return ops.concatenate([zeros, x], axis=2)


def sees_a_key(padding_mask, num_queries, causal):
    """Whether a query sees a real key: bool (batch, 1, queries or 1, 1).

    Args:
      padding_mask: (batch, keys), true at real tokens; None if all are real.

    Returns:
      None where `padding_mask` is: each query sees a key.
    """
    if padding_mask is None:
        return None
    real = ops.cast(padding_mask, "int32")
    if causal:
        seen = ops.cumsum(real, axis=1)[:, ops.shape(real)[1] - num_queries :]
    else:
        seen = ops.sum(real, axis=1, keepdims=True)
    return seen[:, None, :, None] > 0


def zero_unseeing(attended, seeing):
    """What queries attend, (batch, heads, queries, size): zero if they see no key.

    Args:
      seeing: of `sees_a_key`.
    """
    return attended if seeing is None else attended * ops.cast(seeing, attended.dtype)


def identity(x, size: int):
    """The identity for each head of x (batch, heads, …): (batch, heads, size, size)."""
    shape = (*ops.shape(x)[:2], size, size)
    return ops.broadcast_to(ops.eye(size, dtype=x.dtype), shape)


def transpose(x):
    """The last two axes, exchanged."""
    return ops.swapaxes(x, -1, -2)


def transposed_product(x, y):
    """x^T y of the last two axes."""
    return ops.matmul(transpose(x), y)


def transposed_times(matrix, x):
    """matrix^T x of the last two axes; either may be without the first, the batch.

    In one operation: a transposed n x n array never exists, traced or not. TensorFlow
    takes up to half the time where the small factor comes first.
    """
    rank = max(len(matrix.shape), len(x.shape))
    outer, of_x = ("bhc"[rank - len(array.shape) : rank - 2] for array in (matrix, x))
    both = max(outer, of_x, key=len)
    return ops.einsum(f"{of_x}qv,{outer}qk->{both}kv", x, matrix)


def masked(biases, mask):
    """Biases (batch, heads, m, reads), `MASKED` where a mask (batch, m) is false.

    Args:
      mask: None if all are real.
    """
    if mask is None:
        return biases
    return ops.where(mask[:, None, :, None], biases, MASKED)


def largest(x, axis):
    """The maximum along an axis, kept, of at least `LOWEST`; without a gradient."""
    largest = ops.max(x, axis=axis, keepdims=True)
    return ops.stop_gradient(ops.maximum(largest, LOWEST))
