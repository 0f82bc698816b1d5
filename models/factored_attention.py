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

# With biases spread no wider, a row's sum is at least exp(-40) = 4e-18. What matters
# to it is a normal float32 number, and so is its inverse square, which the backward
# pass of a division may form. docs/attention.md, "The guard".
SAFE_SPREAD = 40.0
SMALLEST_SUM = 1e-18


class FactoredState(NamedTuple):
    """What one block's depths share.

    Attributes:
      queries: Q by head, scaled; (batch, heads, queries, D/H).
      keys: K by head, (batch, heads, keys, D/H).
      kernel: E = exp(A0 - row maximum), (batch, heads, queries, keys).
      biases: b^l of every depth, masked; (batch, depths, heads, keys).
      safe: whether the spread of b^l over real keys allows the fast form; (depths,).
    """

    queries: Any
    keys: Any
    kernel: Any
    biases: Any
    safe: Any


@keras.saving.register_keras_serializable("transevolve")
class FactoredAttention(TimeEvolvingAttention):
    """Equation 9 with what cancels left out; the same outputs and gradients.

    The softmax over keys ignores what is constant along keys, so of the three
    evolution terms of equation 9 only the key-side one, b^l = T^l A2, acts:

        softmax_j(A0_ij + b_j) = E_ij w_j / sum_k E_ik w_k,
        E = exp(A0 - row maximum),  w^l = exp(b^l - maximum)

    E is computed once per block. Depth l costs one product of E with
    [w^l * V, w^l] and a division. Padding is w_j = 0. docs/attention.md derives
    this and its numerical guard: where b^l is spread so far that w^l could
    underflow, that depth falls back to the softmax of A0 + b^l.

    See `TimeEvolvingAttention` for the arguments.
    """

    def call(self, x, context, padding_mask=None, training=None):
        """Computes E and the biases of all depths from the block's input.

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
        queries = split_heads(queries * self.scale, self.num_heads)
        keys = split_heads(keys, self.num_heads)
        scores = scaled_scores(queries, keys, self.causal)
        maximum = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))
        return FactoredState(queries, keys, ops.exp(scores - maximum), biases, safe)

    def _biases(self, keys, padding_mask):
        """b^l for every depth by one product, and whether each one is safe."""
        directions = ops.einsum(
            "lht,htd->dlh",
            self.time_vectors(),
            self.split_time_kernel(self.query_time_kernel),
        )
        directions = ops.reshape(directions, (self.projected_dim, -1))
        biases = ops.matmul(keys, directions)
        # Padded keys repeat a real one, so they do not widen the spread.
        spread = ops.max(biases, axis=1) - ops.min(biases, axis=1)
        spread = ops.reshape(spread, (-1, self.num_depths, self.num_heads))
        safe = ops.max(spread, axis=(0, 2)) < SAFE_SPREAD
        if padding_mask is not None:
            biases = ops.where(padding_mask[:, :, None], biases, MASKED)
        biases = ops.transpose(biases, (0, 2, 1))
        batch, _, length = ops.shape(biases)
        shape = (batch, self.num_depths, self.num_heads, length)
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
        values = split_heads(values, self.num_heads)
        biases = state.biases[:, depth]

        def fast():
            maximum = ops.stop_gradient(ops.max(biases, axis=-1, keepdims=True))
            weights = ops.exp(biases - maximum)[..., None]
            weighted = ops.concatenate([weights * values, weights], axis=-1)
            summed = ops.matmul(state.kernel, weighted)
            # A causal row before the first real key sums to zero, the rest to more.
            return summed[..., :-1] / ops.maximum(summed[..., -1:], SMALLEST_SUM)

        def stable():
            scores = scaled_scores(state.queries, state.keys, self.causal)
            weights = ops.softmax(scores + biases[:, :, None, :], axis=-1)
            return ops.matmul(weights, values)

        return merge_heads(ops.cond(state.safe[depth], fast, stable))


def _fill_padding(keys, padding_mask):
    """Replaces padded keys by the first real one, to keep them out of the maxima.

    Their weight w_j is zero either way; but a padded key with a large score would
    otherwise push its row's real entries of E towards underflow.
    """
    first = ops.argmax(ops.cast(padding_mask, "int32"), axis=1)[:, None, None]
    replacement = ops.take_along_axis(keys, first, axis=1)
    return ops.where(padding_mask[:, :, None], keys, replacement)
