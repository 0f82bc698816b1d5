"""Causal sums in chunks: for each chunk of a text, over those before or after it.

A text of n positions is cut in chunks of C <= `CHUNK` positions. What is summed is an
array for each chunk, so time is linear in n.
"""

from keras import ops

from models.attention.heads import transpose
from models.attention.pieces import cut, joined

# Positions of a chunk, at most.
CHUNK = 128


def chunk_size(length, most=None):
    """C, which divides a static length if there is such a size: nothing is padded. If
    not, the least that gives no more chunks.

    Args:
      most: what it is at most, if not `CHUNK` or if less.
    """
    most = min(most or CHUNK, CHUNK)
    if not isinstance(length, int):
        return ops.clip(length, 1, most)
    if length <= most:
        return length
    divisors = (c for c in range(most, most // 2, -1) if not length % c)
    return next(divisors, -(-length // -(-length // most)))


def chunks(x, filler=0, most=None):
    """(batch, heads, length, size) cut to (batch, heads, chunks, C, size).

    `joined` is the inverse.

    Args:
      most: see `chunk_size`.
    """
    length = ops.shape(x)[2]
    size = chunk_size(length, most)
    return cut(x, (length + size - 1) // size, size, filler)


def sums_before(x, decays=None):
    """For each chunk the sum over those before it, of (batch, heads, chunks, …).

    Args:
      decays: (batch, heads, chunks, 1), the logarithm of a factor for each chunk, at
        most 0: what passes over a chunk is multiplied by it. None for 1.
    """
    return _summed(x, decays, after=False)


def sums_after(x, decays=None):
    """For each chunk the sum over those after it, likewise."""
    return _summed(x, decays, after=True)


def earlier(x):
    """Whether a chunk (column) comes before another (row), of (…, chunks, size)."""
    order = ops.arange(ops.shape(x)[-2])
    return order[None, :] < order[:, None]


def _summed(x, decays, after):
    batch, heads, count, *inner = ops.shape(x)
    rows = ops.reshape(x, (batch, heads, count, -1))
    return ops.reshape(_sums(rows, decays, after), (batch, heads, count, *inner))


def _sums(rows, decays, after):
    """For each row the sum over others, (batch, heads, count, width).

    By products, since `ops.cumsum` takes several times as long. Many rows go in groups,
    as positions go in chunks: time stays linear.
    """
    count = ops.shape(rows)[2]
    if not isinstance(count, int) or count <= CHUNK:
        return ops.matmul(_factors(rows, decays, after), rows)
    groups = chunks(rows)
    decays = None if decays is None else chunks(decays)
    within = ops.matmul(_factors(groups, decays, after), groups)
    if decays is None:
        across = _sums(ops.sum(groups, axis=3), None, after)
        return joined(within + across[:, :, :, None], count)
    total = ops.sum(decays, axis=3)
    # Over the rows of a group before each, and over those after it.
    passed = _exponentials(_exclusive_sums(decays), rows)
    left = _exponentials(total[:, :, :, None] - ops.cumsum(decays, axis=3), rows)
    coming, going = (left, passed) if after else (passed, left)
    across = _sums(ops.sum(going * groups, axis=3), total, after)
    return joined(within + coming * across[:, :, :, None], count)


def _factors(rows, decays, after):
    """What a row (the first axis) takes of another, (…, size, size)."""
    factors = earlier(rows)
    if decays is not None:
        over = _exclusive_sums(decays) - transpose(ops.cumsum(decays, axis=-2))
        factors = ops.where(factors, ops.exp(ops.minimum(over, 0)), 0)
    factors = ops.cast(factors, rows.dtype)
    return transpose(factors) if after else factors


def _exclusive_sums(x):
    """Over the rows before each, of (…, size, 1)."""
    # Shifted, not less itself: that of the next row has to be a row's own sum exactly.
    sums = ops.cumsum(x, axis=-2)
    return ops.concatenate([ops.zeros_like(sums[..., :1, :]), sums[..., :-1, :]], -2)


def _exponentials(x, rows):
    return ops.cast(ops.exp(x), rows.dtype)
