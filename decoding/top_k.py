"""The best few of many logits."""

from keras import ops

MAX_GROUP = 32


def top_k(logits, count):
    """`ops.top_k` of many logits, exact, in less time.

    Tokens at equal distances make a group. The best `count` tokens stand in the
    `count` groups of the largest maxima, so that a maximum of each group is sorted,
    then the tokens of those groups, and not all logits.

    Args:
      logits: (..., vocabulary).
      count: from 1 to the vocabulary's size.

    Returns:
      Values, sorted, the largest first, and their int32 tokens, (..., count). Which of
      equal values are chosen is not specified.
    """
    *batch, vocabulary_size = logits.shape
    size = _group_size(vocabulary_size, count)
    num_groups = vocabulary_size // size
    groups = ops.reshape(logits, (*batch, size, num_groups))
    _, chosen = ops.top_k(ops.max(groups, axis=-2), count)
    chosen = ops.cast(chosen, "int32")[..., None, :]
    tokens = chosen + ops.arange(size, dtype="int32")[:, None] * num_groups
    tokens = ops.reshape(tokens, (*batch, size * count))
    values, indices = ops.top_k(ops.take_along_axis(logits, tokens, axis=-1), count)
    return values, ops.take_along_axis(tokens, indices, axis=-1)


def _group_size(vocabulary_size, count):
    """The largest divisor, up to `MAX_GROUP`, that leaves `count` groups or more."""
    largest = min(MAX_GROUP, vocabulary_size // count)
    return max(n for n in range(1, largest + 1) if vocabulary_size % n == 0)
