"""Time-evolving attention in its factored form: one n x n softmax per block."""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from models.attention.evolving_softmax import EvolvingSoftmaxAttention
from models.attention.heads import (
    MASKED,
    merge_heads,
    scaled_scores,
    sees_a_key,
    split_heads,
)
from models.gradients import custom_gradient
from models.products import Product, with_gradients

# With key biases spread no wider, a row's sum over n keys is at least exp(-40) / n,
# and what matters to it is a normal float32 number. docs/attention.md, "The guard".
SAFE_SPREAD = 40.0


class FactoredState(NamedTuple):
    """What one block's depths share. A list has one member per depth.

    Attributes:
      kernel: E, (batch, heads, queries, keys). Automatic differentiation takes it
        for a constant, as it does `queries`, `keys` and `weights`.
      queries, keys: Q, scaled, and K, (batch, heads, length, D/H).
      safe: scalar, whether the spread of every b^l allows the fast form.
      weights: list of w^l, (batch, heads, keys, 1), zero at padding. Ones if not safe.
      sums: list of E w^l, (batch, heads, queries, 1). Ones if not safe. Infinite where
        a query sees no real key.
      biases: list of b^l, (batch, heads, keys, 1), masked.
      carriers: {depth: two arrays of zeros, (batch, heads, queries or keys, d/H)}.
        Their gradients are the two factors of E's gradient at that depth. A depth
        takes its own out: used twice, the factors of two products would add up before
        they multiply.
    """

    kernel: Any
    queries: Any
    keys: Any
    safe: Any
    weights: list
    sums: list
    biases: list
    carriers: dict


@keras.saving.register_keras_serializable("transevolve")
class FactoredAttention(EvolvingSoftmaxAttention):
    """Equation 9 with what cancels left out; the same outputs and gradients.

    The softmax over keys ignores what is constant along keys, so of the three
    evolution terms of equation 9 only the key-side one, b^l = T^l A2, acts:

        softmax_j(A0_ij + b_j) = E_ij w_j / sum_k E_ik w_k,
        E = softmax(A0),  w^l = exp(b^l - maximum)

    E is computed once per block, and the sums of all depths by one product with it.
    Depth l costs one more, E (w^l * V), and a division. Padding is w_j = 0.

    E's gradient is a sum over depths of products of rank d/H + 1. Automatic
    differentiation would write and add one n x n array per depth; here each depth
    hands its two factors to the block's start, which makes E's gradient by one
    product. So each depth attends once for a state, and there are first derivatives
    only.

    docs/attention.md derives this and its numerical guard: if any b^l of a batch is
    spread so far that w^l could underflow, each depth takes softmax(A0 + b^l).

    See `TimeEvolvingAttention` for the arguments.
    """

    def call(self, x, context, padding_mask=None, training=None):
        """Computes what the depths share from the block's input.

        Args:
          x: (batch, queries, d), source of the queries.
          context: (batch, keys, d), source of the keys; `x` for self-attention.
          padding_mask: (batch, keys), true at real tokens; None if all are real.

        Returns:
          `FactoredState`.
        """
        queries, keys = self.project(x, context, training)
        if padding_mask is not None:
            padding_mask = ops.cast(padding_mask, "bool")
            keys = _fill_padding(keys, padding_mask)
        biases, safe = self._masked_biases(keys, padding_mask)
        seeing = sees_a_key(padding_mask, ops.shape(x)[1], self.causal)
        return _start(
            split_heads(queries * self.scale, self.num_heads),
            split_heads(keys, self.num_heads),
            biases,
            safe,
            ops.ones((1, 1, 1, 1), "bool") if seeing is None else seeing,
            self.causal,
            self.hidden_dim // self.num_heads,
        )

    def _masked_biases(self, keys, padding_mask):
        """b^l of all depths, (batch, heads, keys, depths), and whether all are safe."""
        biases = self.biases(keys)
        # Padded keys repeat a real one, so they do not widen the spread.
        spread = ops.max(biases, axis=2) - ops.min(biases, axis=2)
        safe = ops.stop_gradient(ops.max(spread)) < SAFE_SPREAD
        if padding_mask is not None:
            biases = ops.where(padding_mask[:, None, :, None], biases, MASKED)
        return biases, safe

    def attend(self, state, depth, values):
        """Attention output at one depth, before the output projection.

        Args:
          state: what the call returned.
          depth: 0..num_depths - 1.
          values: (batch, keys, d).

        Returns:
          (batch, queries, d), heads merged.

        Raises:
          ValueError: if this depth has attended before.
        """
        values = split_heads(ops.cast(values, self.compute_dtype), self.num_heads)
        return merge_heads(_attend(state, depth, values, self.causal))

    def products(self, batch_size, length):
        n, heads, depths = length, self.num_heads, self.num_depths
        units, size = batch_size * heads, self.hidden_dim // heads
        biases = (batch_size * n, self.projected_dim, heads * depths)
        rank = depths * (size + 1)
        return [
            *super().products(batch_size, length),
            *with_gradients("biases", 1, 1, biases),
            Product("row sums", 1, units, (n, n, depths)),
            Product("E (w V)", depths, units, (n, n, size)),
            Product("w V: gradient", depths, units, (n, n, size), "left", True),
            Product("w: gradient", 1, units, (n, n, depths), "left", True),
            Product("E: gradient", 1, units, (n, rank, n), "right", True),
        ]


def _start(queries, keys, biases, safe, seeing, causal, value_size):
    """The state of a block. Sizes by head; biases (batch, heads, keys, depths)."""
    num_depths = biases.shape[-1]

    @custom_gradient
    def start(queries, keys, biases, safe, seeing):
        kernel = _softmax(queries, keys, causal)
        weights = ops.exp(biases - ops.max(biases, axis=2, keepdims=True))
        weights = ops.where(safe, weights, ops.ones_like(weights))
        sums = ops.matmul(kernel, weights)
        usable = ops.logical_and(safe, sums > 0)
        sums = ops.where(usable, sums, ops.ones_like(sums))
        # What sees no real key attends to nothing, whatever its row of E says.
        sums = ops.where(seeing, sums, np.inf)
        left, right = (ops.zeros_like(x[..., :value_size]) for x in (queries, keys))
        outputs = (
            kernel,
            *_split(weights, num_depths),
            *_split(sums, num_depths),
            *_split(biases, num_depths),
            *[left] * num_depths,
            *[right] * num_depths,
        )

        def backward(*gradients):
            _, d_sums, d_biases, left, right = _groups(gradients[1:], num_depths)
            d_sums = ops.concatenate(d_sums, axis=-1)
            d_biases = ops.concatenate(d_biases, axis=-1)

            def fast():
                d_kernel = ops.matmul(
                    ops.concatenate([*left, d_sums], axis=-1),
                    _transpose(ops.concatenate([*right, weights], axis=-1)),
                )
                d_weights = _transposed_times(kernel, d_sums)
                return kernel * d_kernel, weights * d_weights

            def stable():
                d_scores, more = 0, []
                for depth, bias in enumerate(_split(biases, num_depths)):
                    attention = _softmax(queries, keys, causal, bias)
                    d_sum = d_sums[..., depth : depth + 1]
                    d_attention = ops.matmul(left[depth], _transpose(right[depth]))
                    d_scores += attention * (d_attention + d_sum)
                    more.append(_transposed_times(attention, d_sum))
                return d_scores, ops.concatenate(more, axis=-1)

            d_scores, more = ops.cond(safe, fast, stable)
            return (
                ops.matmul(d_scores, keys),
                _transposed_times(d_scores, queries),
                d_biases + more,
                None,
                None,
            )

        return outputs, backward

    kernel, *lists = start(queries, keys, biases, safe, seeing)
    weights, sums, biases, *carriers = _groups(lists, num_depths)
    kernel, queries, keys = map(ops.stop_gradient, (kernel, queries, keys))
    weights = [ops.stop_gradient(x) for x in weights]
    carriers = dict(enumerate(zip(*carriers, strict=True)))
    return FactoredState(kernel, queries, keys, safe, weights, sums, biases, carriers)


def _attend(state, depth, values, causal):
    """Attention at one depth; values and result by head."""

    @custom_gradient
    def attend(values, sums, bias, left, right, weights, safe, kernel, queries, keys):
        def times(x, transposed=False):
            product = _transposed_times if transposed else ops.matmul
            return ops.cond(
                safe,
                lambda: product(kernel, x),
                lambda: product(_softmax(queries, keys, causal, bias), x),
            )

        weighted = weights * values
        output = times(weighted) / sums

        def backward(d_output):
            left = d_output / sums
            d_sums = -ops.sum(left * output, axis=-1, keepdims=True)
            d_weighted = times(left, transposed=True)
            d_bias = ops.sum(weighted * d_weighted, axis=-1, keepdims=True)
            with_gradient = (weights * d_weighted, d_sums, d_bias, left, weighted)
            return (*with_gradient, None, None, None, None, None)

        return output, backward

    if depth not in state.carriers:
        raise ValueError(
            f"depth {depth} has attended before: expected once for each state"
        )
    left, right = state.carriers.pop(depth)
    return attend(
        values,
        state.sums[depth],
        state.biases[depth],
        left,
        right,
        state.weights[depth],
        state.safe,
        state.kernel,
        state.queries,
        state.keys,
    )


def _softmax(queries, keys, causal, bias=None):
    """softmax(A0), or softmax(A0 + b^l) for b^l of (batch, heads, keys, 1)."""
    scores = scaled_scores(queries, keys, causal)
    if bias is not None:
        scores += _transpose(bias)
    return ops.softmax(scores, axis=-1)


def _transposed_times(matrix, x):
    # In one operation: a transposed n x n array never exists, traced or not.
    return ops.einsum("bhqk,bhqv->bhkv", matrix, x)


def _transpose(x):
    return ops.swapaxes(x, 2, 3)


def _split(x, num_depths):
    """One (..., 1) per depth of (..., depths)."""
    return ops.split(x, num_depths, axis=-1)


def _groups(x, size):
    """Consecutive members of `x` in lists of `size`."""
    return [list(x[i : i + size]) for i in range(0, len(x), size)]


def _fill_padding(keys, padding_mask):
    """Replaces padded keys by the first real one, to keep them out of the softmax.

    Their weight w_j is zero either way; but a padded key with a large score would
    otherwise push its row's real entries of E towards underflow.
    """
    first = ops.argmax(ops.cast(padding_mask, "int32"), axis=1)[:, None, None]
    replacement = ops.take_along_axis(keys, first, axis=1)
    return ops.where(padding_mask[:, :, None], keys, ops.stop_gradient(replacement))
