"""Time-evolving attention exactly as printed: the oracle of every faster form."""

from typing import Any, NamedTuple

import keras
from keras import ops

from models.attention.evolving_softmax import EvolvingSoftmaxAttention
from models.attention.heads import (
    MASKED,
    merge_heads,
    scaled_scores,
    sees_a_key,
    split_heads,
    zero_unseeing,
)
from models.products import with_gradients


class LiteralState(NamedTuple):
    """The time-evolution operators of equation 6, for one block.

    Attributes:
      scores: A0, masked; (batch, heads, queries, keys).
      query_operator: A1, (batch, heads, queries, d'/H).
      key_operator: A2, (batch, heads, keys, d'/H).
      time_operator: A3, (heads, d'/H).
      seeing: of `models.attention.heads.sees_a_key`.
    """

    scores: Any
    query_operator: Any
    key_operator: Any
    time_operator: Any
    seeing: Any


@keras.saving.register_keras_serializable("transevolve")
class LiteralAttention(EvolvingSoftmaxAttention):
    """Softmax(A0 + A1 T^l + T^l A2 + A3 (T^l * T^l)) values, equation 9.

    Holds every weight of the paper, the inert `key_time_kernel` = W~k (d', D)
    included, so parameter counts match Table 2. See `TimeEvolvingAttention` for the
    arguments.
    """

    inert_weights = ("key_time_kernel",)

    def build(self, x_shape, context_shape=None):
        super().build(x_shape, context_shape)
        self.key_time_kernel = self._add_kernel(
            "key_time_kernel", (3 / self.projected_dim) ** 0.5
        )

    def call(self, x, context, padding_mask=None, training=None):
        """Computes the operators of equation 6 from the block's input.

        Args:
          x: (batch, queries, d), source of the queries.
          context: (batch, keys, d), source of the keys; `x` for self-attention.
          padding_mask: (batch, keys), true at real tokens; None if all are real.

        Returns:
          `LiteralState`.
        """
        queries, keys = self.project(x, context, training)
        scores = scaled_scores(
            split_heads(queries * self.scale, self.num_heads),
            split_heads(keys, self.num_heads),
            self.causal,
        )
        if padding_mask is not None:
            visible = ops.cast(padding_mask, scores.dtype)[:, None, None, :]
            scores += MASKED * (1 - visible)
        query_time = self.split_time_kernel(self.query_time_kernel)
        key_time = self.split_time_kernel(self.key_time_kernel)
        return LiteralState(
            scores=scores,
            query_operator=ops.einsum("bnd,htd->bhnt", queries, key_time),
            key_operator=ops.einsum("bnd,htd->bhnt", keys, query_time),
            time_operator=ops.einsum("htd,htd->ht", query_time, key_time),
            seeing=sees_a_key(padding_mask, ops.shape(x)[1], self.causal),
        )

    def attend(self, state, depth, values):
        """Attention output at one depth, before the output projection.

        Args:
          state: what the call returned.
          depth: 0..num_depths - 1.
          values: (batch, keys, d).

        Returns:
          (batch, queries, d), heads merged.
        """
        time = self.time_vectors()[depth]
        query_term = ops.einsum("bhnt,ht->bhn", state.query_operator, time)
        key_term = ops.einsum("bhnt,ht->bhn", state.key_operator, time)
        time_term = ops.sum(state.time_operator * ops.square(time), axis=-1)
        scores = (
            state.scores
            + query_term[:, :, :, None]
            + key_term[:, :, None, :]
            + time_term[None, :, None, None]
        )
        weights = ops.softmax(scores, axis=-1)
        attended = ops.matmul(weights, split_heads(values, self.num_heads))
        return merge_heads(zero_unseeing(attended, state.seeing))

    def products(self, batch_size, length):
        depths, units = self.num_depths, batch_size * self.num_heads
        size = self.hidden_dim // self.num_heads
        operators = (batch_size * length, self.projected_dim, self.hidden_dim)
        return [
            *super().products(batch_size, length),
            *with_gradients("A1, A2", 2, 1, operators, "right"),
            *with_gradients("A1 T, T A2", 2 * depths, units, (length, size, 1)),
            *with_gradients("A V", depths, units, (length, length, size)),
        ]
