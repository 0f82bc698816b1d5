"""Talking heads: a softmax whose scores and weights are mixed across heads."""

import keras
from keras import ops

from models.attention.heads import MASKED, is_future, transpose, transposed_times
from models.attention.operator import Operator
from models.attention.slot_decoding import SlotDecoding
from models.attention.softmax import hide
from models.seeds import derive_seed


class TalkingHeadsOperator(SlotDecoding, Operator):
    """K_h = sum_g P_w[g, h] softmax(sum_k P_l[k, g] Q_k K_k^T) for scaled queries.

    P_l mixes the scores of the heads k to those that are softmaxed, and P_w mixes their
    weights to the heads h of the values (Shazeer et al. 2020, "Talking-Heads
    Attention"). The paper's numbers of heads h_k, h and h_v are all H here. Entries of
    P_w may be negative, so what is read is not divided. With two identities K is that
    of the softmax.

    P_l and P_w are learned, (H, H). At first their entries have the variance 1/H, so
    mixed scores vary as much as scores do. Keys are hidden after the mix, which may
    turn the sign of what hides them.

    It does not serve as cross-attention: a decoder of TransEvolve adds its biases to
    what is read of a source, which needs rows of K that sum to one.
    """

    uses = ("self", "causal")

    def build(self, layer, size):
        """P_l and P_w."""

        def mix(name):
            seed = derive_seed(self.seed, name)
            return layer.add_weight(
                name=name,
                shape=(self.num_heads, self.num_heads),
                initializer=keras.initializers.RandomNormal(
                    0, self.num_heads**-0.5, seed
                ),
            )

        self.score_mix, self.weight_mix = mix("score_mix"), mix("weight_mix")

    def further_inputs(self, x, context, mask=None, training=None):
        """P_l, P_w and, with a mask, what padding adds to scores, (batch, 1, 1, m)."""
        mixes = (ops.cast(mix, x.dtype) for mix in (self.score_mix, self.weight_mix))
        if mask is None:
            return tuple(mixes)
        padding = MASKED * ops.cast(ops.logical_not(mask), x.dtype)
        return *mixes, padding[:, None, None]

    def make(self, inputs, columns):
        """K, the weights that it mixes, and the inputs."""
        queries, keys, score_mix, weight_mix, *padding = inputs
        scores = _mixed(ops.matmul(queries, transpose(keys)), score_mix)
        for hiding in padding:
            scores = scores + hiding
        if self.causal:
            # Lower than padding: a query before the first real key sees padding, whose
            # w is 0, and not what comes.
            future = is_future(*ops.shape(scores)[-2:])
            scores = scores + 2 * MASKED * ops.cast(future, scores.dtype)
        weights = ops.softmax(scores, axis=-1)
        return _mixed(weights, weight_mix), weights, *inputs

    def times(self, parts, x):
        return ops.matmul(parts[0], x)

    def transposed_times(self, parts, y):
        return transposed_times(parts[0], y)

    def gradient(self, parts, left, right):
        _, weights, queries, keys, score_mix, weight_mix, *padding = parts
        d_kernel = ops.matmul(left, transpose(right))
        d_weights = _mixed(d_kernel, transpose(weight_mix))
        mean = ops.sum(weights * d_weights, axis=-1, keepdims=True)
        d_scores = weights * (d_weights - mean)
        d_products = _mixed(d_scores, transpose(score_mix))
        products = ops.matmul(queries, transpose(keys))  # made again, not kept
        return (
            ops.matmul(d_products, keys),
            transposed_times(d_products, queries),
            _mix_gradient(products, d_scores),
            _mix_gradient(weights, d_kernel),
            *[None] * len(padding),
        )

    def inputs_of_step(self, queries, keys, x, position):
        """Queries and keys alone: no gradient of a step is taken."""
        return self.inputs(queries, keys)

    def slot_weights(self, scores, biases, visible=None):
        """K, times w = 2 sigmoid(b) in all reads."""
        score_mix, weight_mix = (
            ops.cast(mix, scores.dtype) for mix in (self.score_mix, self.weight_mix)
        )
        hidden = None if visible is None else ops.logical_not(visible)[:, None]
        weights = ops.softmax(hide(_mixed(scores, score_mix), hidden), axis=-1)
        kernel = _mixed(weights, weight_mix)[:, :, None]
        if biases is None:
            return kernel
        return kernel * ops.cast(2 * ops.sigmoid(biases), kernel.dtype)


def _mixed(x, mix):
    """(batch, to, n, m) of (batch, from, n, m) and (from, to)."""
    batch, heads, rows, columns = ops.shape(x)
    flat = ops.matmul(transpose(mix), ops.reshape(x, (batch, heads, rows * columns)))
    return ops.reshape(flat, (batch, mix.shape[1], rows, columns))


def _mix_gradient(x, d_mixed):
    """(from, to), the gradient of what `_mixed` multiplies x by."""
    x, d_mixed = (ops.reshape(y, (*ops.shape(y)[:2], -1)) for y in (x, d_mixed))
    return ops.sum(ops.einsum("bgx,bhx->bgh", x, d_mixed), axis=0)
