"""Local attention: a softmax within a band, in time linear in the length."""

from keras import ops

from common.fields import integer
from models.attention.cache import State
from models.attention.heads import MASKED, after_earlier
from models.attention.pieces import cut, joined
from models.attention.slot_decoding import TokenCache
from models.attention.softmax import SoftmaxOperator


class LocalWindowOperator(SoftmaxOperator):
    """K = softmax(Q K^T) over the keys less than `window` positions away.

    Causally these are the query's own key and the window - 1 before it; otherwise there
    are as many after it, too (band attention: Lin et al. 2021, "A Survey of
    Transformers", section 5.1; Beltagy et al. 2020). Positions lie in blocks of the
    window's size. The queries of a block meet its own keys and those of the blocks
    beside it, of which the band hides what is too far. A text no longer than the window
    is one block.

    Args:
      window: positions.
    """

    uses = ("self", "causal")
    fields = {
        "window": integer("A query sees keys nearer than so many.", maximum=65_536)
    }
    variants = {"": {"window": 128}}
    small = {"window": 4}
    linear_time = True
    is_ordered = True

    def __init__(self, num_heads, use, seed, window):
        super().__init__(num_heads, use, seed)
        self.window = window

    def rows(self, x, num_keys):
        """Blocks of queries, (batch, heads, blocks, size of a block, size)."""
        return self._blocks(after_earlier(x, num_keys) if self.causal else x)

    def joined_rows(self, x, num_queries, num_keys):
        return joined(x, num_keys)[:, :, num_keys - num_queries :]

    def columns(self, x):
        """The keys of each block and of those beside it."""
        blocks = self._blocks(x)
        if self._is_one_block(ops.shape(x)[2]):
            return blocks
        sides = (1,) if self.causal else (1, -1)
        shifted = [_shifted(blocks, side) for side in sides]
        return ops.concatenate([shifted[0], blocks, *shifted[1:]], axis=3)

    def joined_columns(self, x, num_keys):
        if not self._is_one_block(num_keys):
            before, x, *after = ops.split(x, 2 if self.causal else 3, axis=3)
            x += _shifted(before, -1)
            if after:
                x += _shifted(*after, 1)
        return joined(x, num_keys)

    def hidden(self, num_queries, num_keys):
        blocks, rows, columns = self._layout(num_keys)
        starts = rows * ops.arange(blocks)[:, None, None]
        queries = starts + ops.arange(rows)[:, None]
        keys = starts + ops.arange(columns)
        if columns != rows:
            keys -= rows  # the block before comes first
        distances = queries - keys
        hidden = ops.logical_or(keys < 0, keys >= num_keys)
        hidden = ops.logical_or(hidden, distances >= self.window)
        least = 0 if self.causal else 1 - self.window
        return ops.logical_or(hidden, distances < least)

    def first_distance(self, num_queries, num_keys):
        _, rows, columns = self._layout(num_keys)
        return 0 if rows == columns else -rows

    def sees(self, parts, mask, num_queries):
        """See `DividedOperator.sees`: whether a key of the band is real."""
        if mask is None:
            return None
        num_keys = ops.shape(mask)[1]
        visible = ops.logical_not(self.hidden(num_queries, num_keys))
        real = self.columns(ops.cast(mask, "float32")[:, None, :, None])
        visible = ops.cast(visible, "float32") * ops.swapaxes(real, -1, -2)
        visible = ops.max(visible, axis=-1, keepdims=True)
        return self.joined_rows(visible, num_queries, num_keys) > 0

    def _layout(self, length):
        """Blocks, and the rows and columns of each."""
        if self._is_one_block(length):
            return 1, length, length
        blocks = (length + self.window - 1) // self.window
        return blocks, self.window, self.window * (2 if self.causal else 3)

    def _is_one_block(self, length):
        return isinstance(length, int) and length <= self.window

    def _blocks(self, x):
        blocks, block, _ = self._layout(ops.shape(x)[2])
        return cut(x, blocks, block)

    def empty_cache(self, batch_size, beams, key_size, size, reads, dtype):
        """A `TokenCache` of `Window`s."""
        reads, heads = max(reads, 1), self.num_heads

        def window(heads, size, value=0.0):
            shape = (batch_size, beams, heads, self.window, size)
            return Window(ops.full(shape, value, dtype))

        # Where no token has been yet there is nothing to see.
        biases = window(heads * reads, 1, MASKED)
        values = [window(heads, size) for _ in range(reads)]
        return TokenCache(window(heads, key_size), biases, values)

    def step(self, inputs, biases, cache, visible):
        if biases is None:
            biases = ops.zeros_like(inputs[1][..., :1])
        return super().step(inputs, biases, cache, None)


class Window(State):
    """What is kept of the latest positions of each beam, in the place of `Slots`.

    Attributes:
      value: (batch, beams, heads, window, size), the latest position at the end.
    """

    def append(self, new):
        """With one more position, (batch, heads, beams, size)."""
        new = ops.einsum("bhns->bnhs", ops.cast(new, self.value.dtype))
        return Window(
            ops.concatenate([self.value[:, :, :, 1:], new[:, :, :, None]], axis=3)
        )

    def scores(self, queries):
        """Products of (batch, heads, beams, size) with all positions."""
        return ops.einsum("bhns,bnhws->bhnw", queries, self.value)

    def weighted_sum(self, weights):
        """Sums over positions by weights (batch, heads, beams, window)."""
        return ops.einsum("bhnw,bnhws->bhns", weights, self.value)

    def distances(self, position):
        """Of all positions from the latest: int32 (window,)."""
        return ops.arange(1 - self.value.shape[3], 1)

    def rows(self):
        """(batch, heads, beams, window) of what has size 1."""
        return ops.einsum("bnhws->bhnw", self.value)


def _shifted(blocks, by):
    """Block c of what was block c - by; zeros where there was none."""
    empty = ops.zeros_like(blocks[:, :, :1])
    if by > 0:
        return ops.concatenate([empty, blocks[:, :, :-1]], axis=2)
    return ops.concatenate([blocks[:, :, 1:], empty], axis=2)
