"""Blocks of positions: queries of a block meet the same columns of keys."""

from keras import ops

from common.fields import fail
from models.attention.pieces import cut, joined
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


class BlockSoftmax(SoftmaxOperator):
    """K = softmax(Q K^T), where each block of queries meets columns of its own.

    What else is by key (keys, biases, values and their gradients) is already laid out
    in such columns: (batch, heads, blocks, columns, size).

    Args:
      block: queries of a block.
    """

    def __init__(self, num_heads, block):
        super().__init__(num_heads, "self", 0)
        self.block = block

    def rows(self, x, num_keys):
        return cut(x, count(ops.shape(x)[2], self.block), self.block)

    def joined_rows(self, x, num_queries, num_keys):
        return joined(x, num_queries)
