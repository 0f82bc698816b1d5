"""The best few of many logits."""

from keras import ops

MAX_GROUP = 32


def top_k(logits, count):
    """`ops.top_k`, in less time where the vocabulary divides into groups.

    The best `count` logits stand in the `count` groups of neighbours that have the
    largest maxima. So a maximum of each group is ranked, then the logits of those
    groups, and not all of them. Of equal logits the first ranks first.

    Args:
      logits: (..., vocabulary).
      count: from 1 to the vocabulary's size.

    Returns:
      Values, sorted, the largest first, and their int32 tokens, (..., count).
    """
    *batch, vocabulary_size = logits.shape
    size = _group_size(vocabulary_size, count)
    if size == 1:
        values, tokens = ops.top_k(logits, count)
        return values, ops.cast(tokens, "int32")
    groups = ops.reshape(logits, (*batch, vocabulary_size // size, size))
    _, chosen = ops.top_k(ops.max(groups, axis=-1), count)
    # In the order of tokens, for equal logits.
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=-1)[..., None]
    tokens = chosen * size + ops.arange(size, dtype="int32")
    tokens = ops.reshape(tokens, (*batch, count * size))
    values, indices = ops.top_k(ops.take_along_axis(logits, tokens, axis=-1), count)
    return values, ops.take_along_axis(tokens, indices, axis=-1)


def _group_size(vocabulary_size, count):
    """The largest divisor, up to `MAX_GROUP`, that leaves `count` groups or more."""
    largest = min(MAX_GROUP, vocabulary_size // count)
    return max(n for n in range(1, largest + 1) if vocabulary_size % n == 0)
