"""Big Bird: a softmax over window, global and random blocks, in linear time."""

import numpy as np
from keras import ops

from common.fields import integer
from models.attention import blocks
from models.attention.blocks import BlockSoftmax
from models.attention.heads import MASKED, sees_a_key
from models.attention.operator import DividedOperator
from models.attention.pieces import cut, joined
from models.attention.softmax import SoftmaxOperator
from models.seeds import derive_seed


class BigBirdOperator(DividedOperator):
    """K = softmax(Q K^T) over the keys that a query meets.

    A text is cut into blocks. Queries of the first blocks, the global ones, meet all
    keys. Those of any other block meet the keys of the global blocks, of their own
    block and those beside it, and of random blocks that are none of these (Zaheer et
    al. 2020, "Big Bird", section 2 and appendix D: the internal construction, ITC).
    No key counts twice: at the borders a query meets fewer.

    Every head draws random blocks of its own, from the seed: each pair of blocks has a
    priority, and a block meets those that come first among all it may meet. Blocks of
    padding alone are not drawn, so a text has the same random blocks however far it is
    padded.

    Args:
      block: positions of a block.
      window_blocks: the own block and those around it; of an even number there is one
        more before it than after it.
      global_blocks: at the beginning of the text.
      random_blocks: of each block and head.
    """

    uses = ("self",)
    fields = {
        "block": integer("Positions of a block.", maximum=65_536),
        "window_blocks": integer("A query's own block and those around.", 1, 1_024),
        "global_blocks": integer("First blocks, which meet all.", 1, 1_024),
        "random_blocks": integer("Random blocks that a block meets.", 0, 1_024),
    }
    variants = {
        "": {"block": 64, "window_blocks": 3, "global_blocks": 2, "random_blocks": 3}
    }
    small = {"block": 2, "window_blocks": 3, "global_blocks": 1, "random_blocks": 1}
    linear_time = True
    is_ordered = True
    padding = "end"
    check = staticmethod(blocks.check)

    def __init__(
        self, num_heads, use, seed, block, window_blocks, global_blocks, random_blocks
    ):
        super().__init__(num_heads, use, seed)
        self.block = block
        self.window_blocks = window_blocks
        self.global_blocks = global_blocks
        self.random_blocks = random_blocks
        self.first = SoftmaxOperator(num_heads, use, seed)
        self.rest = BlockSoftmax(num_heads, block)

    def build(self, layer, size):
        self.max_length = layer.max_length

    def prepare_keys(self, keys, scale, mask=None):
        """See `SoftmaxOperator.prepare_keys`."""
        return self.first.prepare_keys(keys, scale, mask)

    def further_inputs(self, x, context, mask=None, training=None):
        """Which blocks each block meets, but for the global ones.

        Returns:
          int32 (batch or 1, heads, blocks - global ones, blocks that it meets). The
          number of all blocks stands where there are no more to meet.

        Raises:
          ValueError: if neither the length nor `max_length` is known.
        """
        count = blocks.count(ops.shape(context)[1], self.block)
        met = ops.arange(count)
        ahead = met - met[self.global_blocks :, None]
        before = self.window_blocks // 2
        window = ops.logical_and(ahead >= -before, ahead < self.window_blocks - before)
        window = ops.logical_and(window, met >= self.global_blocks)
        ranks = self._priorities(count)[None, :, self.global_blocks :]
        if mask is not None:
            real = ops.cast(mask, "int32")[:, None, :, None]
            real = ops.max(cut(real, count, self.block), axis=(3, 4))
            ranks = ops.where(real[:, :, None] > 0, ranks, -1.0)
        ranks = ops.where(window, 2.0, ranks)
        ranks = ops.where(met < self.global_blocks, 3.0, ranks)
        num_met = self._num_met(count)
        if not isinstance(count, int):  # there may be fewer blocks
            missing = [[0, 0]] * 3 + [[0, num_met]]
            ranks = ops.pad(ranks, missing, constant_values=-1.0)
        ranks, met = ops.top_k(ranks, num_met)
        number = ops.sum(ops.cast(window, "int32"), axis=1, keepdims=True)
        number += self.global_blocks + self.random_blocks
        is_one = ops.logical_and(ranks >= 0, ops.arange(num_met) < number)
        return (ops.cast(ops.where(is_one, met, count), "int32"),)

    def _num_met(self, count):
        """Blocks that a block meets; so many that it may, where that is not known."""
        stated = self.window_blocks + self.global_blocks + self.random_blocks
        return min(stated, count) if isinstance(count, int) else stated

    def _priorities(self, count):
        """Of a block (column) to be drawn by another (row): (heads, count, count)."""
        if isinstance(count, int):
            return ops.convert_to_tensor(self.priorities(count))
        if self.max_length is None:
            raise ValueError(
                "random blocks are drawn for texts of a known length: expected "
                "max_length or a static length, got neither"
            )
        most = blocks.count(self.max_length, self.block)
        return ops.convert_to_tensor(self.priorities(most))[:, :count, :count]

    def priorities(self, count: int) -> np.ndarray:
        """Numbers from 0 to 1, the same for two blocks however many there are."""
        row, column = np.indices((count, count))
        larger = np.maximum(row, column)
        place = larger**2 + larger + row - column
        # A stream that stays the same across versions of NumPy: no checkpoint keeps it.
        streams = (
            np.random.SeedSequence(derive_seed(self.seed, "blocks", str(head)))
            for head in range(self.num_heads)
        )
        draws = (np.random.RandomState(np.random.MT19937(s)) for s in streams)
        numbers = np.stack([draw.random_sample(count**2)[place] for draw in draws])
        return numbers.astype("float32")

    def make(self, inputs, columns):
        """K of the first blocks' queries and of the others, the queries, the keys
        plainly and as the others meet them, and the blocks that are met."""
        queries, keys, met = inputs
        first, rest = self._parted(queries)
        laid_out = self._columns(keys, met)
        kernels = self.first.kernel((first, keys)), self.rest.kernel((rest, laid_out))
        return *kernels, queries, keys, laid_out, met

    def times(self, parts, x):
        first, rest, met = self._made(parts)
        by_rest = self.rest.times(rest, self._columns(x, met))
        return ops.concatenate([self.first.times(first, x), by_rest], axis=2)

    def transposed_times(self, parts, y):
        first, rest, met = self._made(parts)
        by_first, by_rest = self._parted(y)
        by_rest = self.rest.transposed_times(rest, by_rest)
        by_rest = self._joined_columns(by_rest, met, ops.shape(y)[2])
        return self.first.transposed_times(first, by_first) + by_rest

    def gradient(self, parts, left, right):
        first, rest, met = self._made(parts)
        by_first, by_rest = self._parted(left)
        d_first, d_keys = self.first.gradient(first, by_first, right)
        right = self._columns(right, met)
        d_rest, d_laid_out = self.rest.gradient(rest, by_rest, right)
        d_keys += self._joined_columns(d_laid_out, met, ops.shape(d_keys)[2])
        return ops.concatenate([d_first, d_rest], axis=2), d_keys, None

    def sees(self, parts, mask, num_queries):
        """See `DividedOperator.sees`: all meet the first key, real if any is."""
        return sees_a_key(mask, num_queries, causal=False)

    def read_apart(self, inputs, biases, values):
        """softmax(Q K^T + b) V over the keys that a query meets."""
        queries, keys, met = inputs
        first, rest = self._parted(queries)
        first = self.first.read_apart((first, keys), biases, values)
        rest = self.rest.read_apart(
            (rest, self._columns(keys, met)),
            self._columns(biases, met, MASKED),
            self._columns(values, met),
        )
        return ops.concatenate([first, rest], axis=2)

    def _parted(self, x):
        """What is of the first blocks' queries, and of the others."""
        end = self.global_blocks * self.block
        return x[:, :, :end], x[:, :, end:]

    def _made(self, parts):
        """The parts of the first queries' softmax, of the others', and what is met."""
        first_kernel, kernel, queries, keys, laid_out, met = parts
        first, rest = self._parted(queries)
        return (first_kernel, first, keys), (kernel, rest, laid_out), met

    def _columns(self, x, met, filler=0):
        """What each block meets, (batch, heads, blocks - global ones, columns, size).

        Args:
          filler: where there is nothing to meet. Zeros there have no weight.
        """
        batch, heads, length, size = ops.shape(x)
        number = blocks.count(length, self.block) + 1
        x = cut(x, number, self.block, filler)
        x = ops.reshape(x, (batch * heads * number, self.block * size))
        x = ops.take(x, _places(met, batch, heads, number), axis=0)
        _, _, rows, num_met = ops.shape(met)
        return ops.reshape(x, (batch, heads, rows, num_met * self.block, size))

    def _joined_columns(self, x, met, length):
        """Transposed `_columns`: adds up what falls on a key."""
        batch, heads, rows, columns, size = ops.shape(x)
        number = blocks.count(length, self.block) + 1
        total = batch * heads * rows * (columns // self.block)
        x = ops.reshape(x, (total, self.block * size))
        places = _places(met, batch, heads, number)
        x = ops.segment_sum(x, places, num_segments=batch * heads * number)
        x = ops.reshape(x, (batch, heads, number, self.block, size))
        return joined(x, length)


def _places(met, batch, heads, number):
    """The blocks that are met among those of all texts and heads, (places,)."""
    start = ops.reshape(number * ops.arange(batch * heads), (batch, heads, 1, 1))
    return ops.reshape(start + met, (-1,))
