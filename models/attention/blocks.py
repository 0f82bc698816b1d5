"""Blocks of positions: queries of a block meet the same columns of keys."""

from keras import ops

from common.fields import fail
from models.attention.softmax import SoftmaxOperator

# Blocks of a text, at most: some arrays have a number for each two of them.
MOST = 1_024


def check(config) -> None:
    """Raises `UserError` if the longest text of a config has too many blocks."""
    block, longest = config.model.attention.block, config.data.max_length
    least = count(longest, MOST)
    if block < least:
        fail("model.attention.block", f"{least} or more at this max_length", block)


def count(length, block: int):
    """How many blocks of so many positions a text has, the last perhaps not full."""
    return (length + block - 1) // block


def split(x, blocks, block: int, filler=0):
    """(batch, heads, length, size) to (batch, heads, blocks, block, size).

    Args:
      filler: at positions after the text's.
    """
    batch, heads, length, size = ops.shape(x)
    missing = blocks * block - length
    if not isinstance(missing, int) or missing:
        end = ops.full((batch, heads, missing, size), filler, x.dtype)
        x = ops.concatenate([x, end], axis=2)
    return ops.reshape(x, (batch, heads, blocks, block, size))


def joined(x, length):
    """Inverse of `split`: the first `length` positions."""
    batch, heads, blocks, block, size = ops.shape(x)
    return ops.reshape(x, (batch, heads, blocks * block, size))[:, :, :length]


class BlockSoftmax(SoftmaxOperator):
    """K = softmax(Q K^T), where each block of queries meets columns of its own.

    What else is by key (keys, biases, values and their gradients) is already laid out
    in such columns: (batch, heads, blocks, columns, size).

    Args:
      block: queries of a block.
      num_columns: of each, to count products.
    """

    def __init__(self, num_heads, block, num_columns=None):
        super().__init__(num_heads, "self", 0)
        self.block = block
        self.num_columns = num_columns

    def rows(self, x, num_keys):
        return split(x, count(ops.shape(x)[2], self.block), self.block)

    def joined_rows(self, x, num_queries, num_keys):
        return joined(x, num_queries)

    def layout(self, length):
        return count(length, self.block), self.block, self.num_columns
