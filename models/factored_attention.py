"""Time-evolving attention in its factored form: one n x n softmax per block."""

from typing import Any, NamedTuple

import keras
from keras import ops

from models.time_evolving_attention import (
    MASKED,
    TimeEvolvingAttention,
    merge_heads,
    scaled_scores,
    split_heads,
)

# With key biases spread no wider, a row's sum over n keys is at least exp(-40) / n,
# and what matters to it is a normal float32 number. docs/attention.md, "The guard".
SAFE_SPREAD = 40.0
SMALLEST_SUM = 1e-30


class FactoredState(NamedTuple):
    """What one block's depths share. Lists have one member per depth.

    Attributes:
      kernel: E = softmax(A0), (batch, heads, queries, keys). A constant to automatic
        differentiation, as are `scores` and `weights`: see `FactoredAttention`.
      scores: A0 of the fallback, as a function without arguments.
      weights: list of w^l, (batch, heads, keys, 1), zero at padding.
      sums: list of E w^l, (batch, heads, queries, 1).
      biases: list of b^l, (batch, heads, 1, keys), masked.
      query_factors: list of zeros, (batch, heads, queries, d/H), that only carry the
        left factor of E's gradient back to the block's start.
      key_factors: the same for the right factor, (batch, heads, keys, d/H).
      safe: scalar, whether the spread of every b^l allows the fast form.
    """

    kernel: Any
    scores: Any
    weights: list
    sums: list
    biases: list
    query_factors: list
    key_factors: list
    safe: Any


@keras.saving.register_keras_serializable("transevolve")
class FactoredAttention(TimeEvolvingAttention):
    """Equation 9 with what cancels left out; the same outputs and gradients.

    The softmax over keys ignores what is constant along keys, so of the three
    evolution terms of equation 9 only the key-side one, b^l = T^l A2, acts:

        softmax_j(A0_ij + b_j) = E_ij w_j / sum_k E_ik w_k,
        E = softmax(A0),  w^l = exp(b^l - maximum)

    E is computed once per block, and the sums of all depths by one product with it.
    Depth l costs one product, E (w^l * V), and a division. Padding is w_j = 0.

    The gradient is written by hand for one reason: E's is a sum over depths of
    products of rank d/H, and automatic differentiation would write and add one
    n x n array per depth. Here every depth passes its two factors to the block's
    start, as the gradients of zeros that it was given for the purpose, and the start
    makes E's gradient by one product. First derivatives only.

    docs/attention.md derives this and its numerical guard: where some b^l is spread
    so far that w^l could underflow, every depth takes softmax(A0 + b^l) instead.

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
        biases, safe = self._biases(keys, padding_mask)
        return _start(
            split_heads(queries * self.scale, self.num_heads),
            split_heads(keys, self.num_heads),
            biases,
            safe,
            self.causal,
            self.hidden_dim // self.num_heads,
        )

    def _biases(self, keys, padding_mask):
        """b^l of every depth, (batch, heads, depths, keys), and whether all are safe."""
        directions = ops.einsum(
            "lht,htd->dhl",
            self.time_vectors(),
            self.split_time_kernel(self.query_time_kernel),
        )
        directions = ops.reshape(directions, (self.projected_dim, -1))
        biases = ops.matmul(keys, directions)
        # Padded keys repeat a real one, so they do not widen the spread.
        spread = ops.max(biases, axis=1) - ops.min(biases, axis=1)
        safe = ops.max(spread) < SAFE_SPREAD
        if padding_mask is not None:
            biases = ops.where(padding_mask[:, :, None], biases, MASKED)
        biases = ops.transpose(biases, (0, 2, 1))
        batch, _, length = ops.shape(biases)
        shape = (batch, self.num_heads, self.num_depths, length)
        return ops.reshape(biases, shape), safe

    def attend(self, state, depth, values):
        """Attention output at one depth, before the output projection.

        Args:
          state: what the call returned.
          depth: 0..num_depths - 1.
          values: (batch, keys, d).

        Returns:
          (batch, queries, d), heads merged.
        """
        return merge_heads(_attend(state, depth, split_heads(values, self.num_heads)))


def _start(queries, keys, biases, safe, causal, value_size):
    """State of a block from Q and K by head, and b of (batch, heads, depths, keys)."""
    constant_queries = ops.stop_gradient(queries)
    constant_keys = ops.stop_gradient(keys)
    constant_biases = ops.stop_gradient(biases)
    safe = ops.stop_gradient(safe)
    num_depths = biases.shape[2]

    def scores():
        return scaled_scores(constant_queries, constant_keys, causal)

    kernel = ops.softmax(scores(), axis=-1)
    maximum = ops.max(constant_biases, axis=-1, keepdims=True)
    weights = ops.exp(constant_biases - maximum)
    weights = ops.where(safe, weights, ops.ones_like(weights))

    @ops.custom_gradient
    def forward(queries, keys, biases):
        sums = ops.matmul(kernel, ops.swapaxes(weights, 2, 3))
        sums = ops.maximum(sums, SMALLEST_SUM)
        sums = ops.where(safe, sums, ops.ones_like(sums))
        outputs = (
            *_unstack(sums, 3),
            *_unstack(biases, 2),
            *[ops.zeros_like(queries[..., :value_size]) for _ in range(num_depths)],
            *[ops.zeros_like(keys[..., :value_size]) for _ in range(num_depths)],
        )

        def backward(*slopes):
            slopes = slopes[0] if isinstance(slopes[0], tuple) else slopes
            of_sums, of_biases, query_factors, key_factors = (
                list(slopes[i * num_depths : (i + 1) * num_depths]) for i in range(4)
            )
            of_sums = ops.concatenate(of_sums, axis=3)
            of_biases = ops.concatenate(of_biases, axis=2)

            def fast():
                slope = kernel * ops.matmul(
                    ops.concatenate([*query_factors, of_sums], axis=3),
                    ops.concatenate(
                        [
                            *[ops.swapaxes(factor, 2, 3) for factor in key_factors],
                            weights,
                        ],
                        axis=2,
                    ),
                )
                of_weights = ops.matmul(ops.swapaxes(of_sums, 2, 3), kernel)
                return (
                    ops.matmul(slope, keys),
                    ops.matmul(ops.swapaxes(slope, 2, 3), queries),
                    of_biases + weights * of_weights,
                )

            return fast()

        return outputs, backward

    outputs = forward(queries, keys, biases)
    return FactoredState(
        kernel,
        scores,
        [ops.swapaxes(w, 2, 3) for w in _unstack(weights, 2)],
        *[list(outputs[i * num_depths : (i + 1) * num_depths]) for i in range(4)],
        safe,
    )


def _attend(state, depth, values):
    weights = state.weights[depth]

    @ops.custom_gradient
    def forward(values, sums, biases, query_factor, key_factor):
        weighted = weights * values
        output = ops.matmul(state.kernel, weighted) / sums

        def backward(slope):
            scaled = slope / sums
            of_sums = -ops.sum(scaled * output, axis=-1, keepdims=True)
            gathered = ops.matmul(ops.swapaxes(state.kernel, 2, 3), scaled)
            of_biases = ops.sum(gathered * weighted, axis=-1)[:, :, None, :]
            return weights * gathered, of_sums, of_biases, scaled, weighted

        return output, backward

    return forward(
        values,
        state.sums[depth],
        state.biases[depth],
        state.query_factors[depth],
        state.key_factors[depth],
    )


def _unstack(x, axis):
    return ops.split(x, x.shape[axis], axis=axis)


def _fill_padding(keys, padding_mask):
    """Replaces padded keys by the first real one, to keep them out of the maxima.

    Their weight w_j is zero either way; but a padded key with a large score would
    otherwise push its row's real entries of E towards underflow.
    """
    first = ops.argmax(ops.cast(padding_mask, "int32"), axis=1)[:, None, None]
    replacement = ops.take_along_axis(keys, first, axis=1)
    return ops.where(padding_mask[:, :, None], keys, ops.stop_gradient(replacement))
