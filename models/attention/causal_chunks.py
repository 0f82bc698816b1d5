"""Causal sums in chunks: for each chunk of a text, over those before or after it.

A text of n positions is cut in chunks of C <= `CHUNK` positions. What is summed is an
array for each chunk, so time is linear in n.
"""

from keras import ops

# Positions of a chunk, at most.
CHUNK = 128


def chunk_size(length):
    """C, which divides a static length if there is such a size: nothing is padded."""
    if not isinstance(length, int):
        return ops.clip(length, 1, CHUNK)
    if length <= CHUNK:
        return length
    divisors = (c for c in range(CHUNK, CHUNK // 2, -1) if not length % c)
    return next(divisors, CHUNK)


def chunks(x, filler=0):
    """(batch, heads, length, size) to (batch, heads, chunks, C, size)."""
    batch, heads, length, width = ops.shape(x)
    size = chunk_size(length)
    missing = -length % size
    if not isinstance(missing, int) or missing:
        end = ops.full((batch, heads, missing, width), filler, x.dtype)
        x = ops.concatenate([x, end], axis=2)
    count = (length + size - 1) // size
    return ops.reshape(x, (batch, heads, count, size, width))


def joined(x, length):
    """Inverse of `chunks`."""
    batch, heads, count, size, width = ops.shape(x)
    return ops.reshape(x, (batch, heads, count * size, width))[:, :, :length]


def sums_before(x):
    """For each chunk the sum over those before it, of (batch, heads, chunks, …)."""
    return _summed(x, earlier)


def sums_after(x):
    """For each chunk the sum over those after it."""
    return _summed(x, lambda rows: ops.swapaxes(earlier(rows), -1, -2))


def earlier(x):
    """Whether a chunk (column) comes before another (row), of (…, chunks, size)."""
    order = ops.arange(ops.shape(x)[-2])
    return order[None, :] < order[:, None]


def triangles(count):
    """Of the products over so many chunks: [(rows of a product, products)]."""
    if _is_few(count):
        return [(count, 1)]
    size = chunk_size(count)
    groups = -(-count // size)
    return [(size, groups), *triangles(groups)]


def _summed(x, which):
    batch, heads, count, *inner = ops.shape(x)
    rows = ops.reshape(x, (batch, heads, count, -1))
    return ops.reshape(_sums(rows, which), (batch, heads, count, *inner))


def _sums(rows, which):
    """For each row the sum over others, (batch, heads, count, width).

    By products, since `ops.cumsum` takes several times as long. Many rows go in groups,
    as positions go in chunks: time stays linear.
    """
    count = ops.shape(rows)[2]
    if _is_few(count):
        return ops.matmul(ops.cast(which(rows), rows.dtype), rows)
    groups = chunks(rows)
    within = ops.matmul(ops.cast(which(groups), rows.dtype), groups)
    across = _sums(ops.sum(groups, axis=3), which)
    return joined(within + across[:, :, :, None], count)


def _is_few(count):
    return not isinstance(count, int) or count <= CHUNK
