"""Sinkhorn attention: a softmax over the own block and a softly sorted one."""

import keras
from keras import ops

from common.fields import integer, real
from models.attention import blocks
from models.attention.blocks import BlockSoftmax
from models.attention.heads import MASKED, largest, transpose
from models.attention.operator import DividedOperator
from models.attention.pieces import cut, joined
from models.seeds import derive_seed


class SinkhornOperator(DividedOperator):
    """K = [P, P' R]: each query meets its own block and one that is softly sorted.

        [P_i, P'_i] = softmax(Q_i [K_i, sum_j R_ij K_j]^T)    for the blocks i, j
        R = S(([sum over block i of x] W + noise) / temperature)

    (Tay et al. 2020, "Sparse Sinkhorn Attention", section 3). S makes the rows and then
    the columns of exp(.) sum to one, `iterations` times, so R is nearly doubly
    stochastic: a soft permutation of the blocks. Values and weights are sorted as the
    keys are. The noise is Gumbel's, in training only. W is one matrix a head, without
    a bias; it starts so small that every block is sorted to all places alike.

    Padding at the end has no part in any sum. Blocks of padding alone are sorted among
    themselves, so a text's R is the same however far it is padded. In a text of one
    block R = 1, and K = softmax(Q K^T).

    Time has a part that is quadratic in the number of blocks, as R has.

    Args:
      block: positions of a block.
      iterations: of rows and columns.
      temperature: the lower, the nearer R is to a permutation.
    """

    uses = ("self",)
    fields = {
        "block": integer("Positions of a block.", maximum=65_536),
        "iterations": integer("Normalisations of rows and columns.", 1, 100),
        "temperature": real("Of the sorting; lower is harder.", 0.01, 100),
    }
    variants = {"": {"block": 64, "iterations": 5, "temperature": 0.75}}
    small = {"block": 4}
    linear_time = True
    is_ordered = True
    has_weights_by_position = True
    padding = "end"
    check = staticmethod(blocks.check)

    def __init__(self, num_heads, use, seed, block, iterations, temperature):
        super().__init__(num_heads, use, seed)
        self.block = block
        self.iterations = iterations
        self.temperature = temperature
        self.softmax = BlockSoftmax(num_heads, block)

    def build(self, layer, size):
        """Makes W, and the state of the noise: a variable, as Keras's dropout has."""
        width, most = layer.hidden_dim, blocks.count(layer.max_length, self.block)
        limit = (3 / width) ** 0.5 / self.block
        seed = derive_seed(self.seed, "sorting")
        self.sorting = layer.add_weight(
            name="sorting",
            shape=(self.num_heads, width, most),
            initializer=keras.initializers.RandomUniform(-limit, limit, seed),
        )
        noise = keras.random.SeedGenerator(derive_seed(self.seed, "noise"))
        layer.sorting_noise = self.noise = noise

    def prepare_keys(self, keys, scale, mask=None):
        """Padded keys are zero, since a sorted key is a sum of keys."""
        if mask is not None:
            keys = ops.where(mask[:, None, :, None], keys, ops.zeros_like(keys))
        return keys, None

    def further_inputs(self, x, context, mask=None, training=None):
        """log R, float32 (batch, heads, blocks, blocks)."""
        x = ops.cast(x, "float32")
        count = blocks.count(ops.shape(x)[1], self.block)
        if mask is not None:
            x = ops.where(mask[..., None], x, 0.0)
        sums = ops.sum(cut(x[:, None], count, self.block), axis=3)[:, 0]
        kernel = ops.cast(self.sorting[:, :, :count], "float32")
        logits = ops.einsum("bid,hdj->bhij", sums, kernel)
        if training:
            uniform = keras.random.uniform(
                ops.shape(logits), 1e-20, 1.0, "float32", self.noise
            )
            logits -= ops.log(-ops.log(uniform))
        logits = logits / self.temperature
        if mask is not None:
            filled = self._filled(mask, count)
            apart = ops.not_equal(filled, transpose(filled))
            logits = ops.where(apart, MASKED, logits)
        for _ in range(self.iterations):
            logits = ops.log_softmax(ops.log_softmax(logits, axis=-1), axis=-2)
        return (logits,)

    def _filled(self, mask, count):
        """Which blocks have a real token, bool (batch, 1, blocks, 1)."""
        real = cut(ops.cast(mask, "int32")[:, None, :, None], count, self.block)
        return ops.max(real, axis=3) > 0

    def make(self, inputs, columns):
        """P and P' in one array, queries, keys with the sorted ones, keys in blocks,
        and R."""
        queries, keys, logs = inputs
        keys, sorting = self._blocks(keys), ops.cast(ops.exp(logs), keys.dtype)
        laid_out = self._columns(keys, sorting)
        kernel = self.softmax.kernel((queries, laid_out))
        return kernel, queries, laid_out, keys, sorting

    def times(self, parts, x):
        *made, _, sorting = parts
        return self.softmax.times(made, self._columns(self._blocks(x), sorting))

    def transposed_times(self, parts, y):
        *made, _, sorting = parts
        columns = self.softmax.transposed_times(made, y)
        return self._joined_columns(columns, sorting, ops.shape(y)[2])

    def gradient(self, parts, left, right):
        *made, keys, sorting = parts
        kernel, queries, laid_out = made
        right, length = self._blocks(right), ops.shape(queries)[2]
        columns = self._columns(right, sorting)
        d_queries, d_columns = self.softmax.gradient(made, left, columns)
        d_keys = self._joined_columns(d_columns, sorting, length)
        # R sorts what is read, and keys.
        made = kernel[..., self.block :], queries, laid_out
        d_right = self.softmax.transposed_times(made, left)
        d_sorting = ops.matmul(_flat(d_right), transpose(_flat(right)))
        d_sorted_keys = d_columns[..., self.block :, :]
        d_sorting += ops.matmul(_flat(d_sorted_keys), transpose(_flat(keys)))
        return d_queries, d_keys, ops.cast(sorting * d_sorting, "float32")

    def sees(self, parts, mask, num_queries):
        """See `DividedOperator.sees`: a block of padding alone meets no other."""
        if mask is None:
            return None
        filled = self._filled(mask, blocks.count(num_queries, self.block))
        return ops.repeat(filled, self.block, axis=2)[:, :, :num_queries]

    def read_apart(self, inputs, biases, values):
        """Sorted columns are sums relative to their largest exponents, log R + b."""
        queries, keys, logs = inputs
        sorting = ops.cast(ops.exp(logs), keys.dtype)
        biases = self._blocks(biases, MASKED)
        # (batch, heads, blocks, blocks that are sorted to it, positions)
        exponents = logs[..., None] + biases[:, :, None, ..., 0]
        most = largest(exponents, axis=3)
        values = ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)
        values = self._blocks(values)
        weights = ops.cast(ops.exp(exponents - most), values.dtype)
        summed = ops.einsum("bhijc,bhjcs->bhics", weights, values)
        sums = self.softmax.read_apart(
            (queries, self._columns(self._blocks(keys), sorting)),
            ops.concatenate([biases, most[:, :, :, 0, :, None]], axis=3),
            ops.concatenate([values, summed], axis=3),
        )
        total = sums[..., -1:]
        return sums[..., :-1] / ops.where(total > 0, total, 1.0)

    def _blocks(self, x, filler=0):
        count = blocks.count(ops.shape(x)[2], self.block)
        return cut(x, count, self.block, filler)

    def _columns(self, x, sorting):
        """What is in each block, and what is sorted to it."""
        flat = ops.matmul(sorting, _flat(x))
        return ops.concatenate([x, ops.reshape(flat, ops.shape(x))], axis=3)

    def _joined_columns(self, x, sorting, length):
        """Transposed `_columns`: adds up what falls on a position."""
        x, by_sorted = x[..., : self.block, :], x[..., self.block :, :]
        flat = ops.matmul(transpose(sorting), _flat(by_sorted))
        return joined(x + ops.reshape(flat, ops.shape(x)), length)


def _flat(x):
    """A row for each block: (batch, heads, blocks, numbers)."""
    return ops.reshape(x, (*ops.shape(x)[:3], -1))
