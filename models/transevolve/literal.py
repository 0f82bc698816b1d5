"""Time-evolving attention exactly as printed: the oracle of every faster form."""

from typing import Any, NamedTuple

import keras
from keras import ops

from models.attention.heads import (
    MASKED,
    is_future,
    merge_heads,
    sees_a_key,
    split_heads,
    zero_unseeing,
)
from models.transevolve.attention import TimeEvolvingAttention


class LiteralState(NamedTuple):
    """The time-evolution operators of equation 6, for one block, and T of its reads.

    Attributes:
      scores: A0, masked; (batch, heads, queries, keys).
      query_operator: A1, (batch, heads, queries, d'/H).
      key_operator: A2, (batch, heads, keys, d'/H).
      time_operator: A3, (heads, d'/H).
      time_vectors: T^l, (reads, heads, d'/H).
      sees: of `models.attention.heads.sees_a_key`.
    """

    scores: Any
    query_operator: Any
    key_operator: Any
    time_operator: Any
    time_vectors: Any
    sees: Any

    def read(self, number, values):
        """What a depth attends, (batch, n, d), before the output projection."""
        time = self.time_vectors[number]
        query_term = ops.einsum("bhnt,ht->bhn", self.query_operator, time)
        key_term = ops.einsum("bhnt,ht->bhn", self.key_operator, time)
        time_term = ops.sum(self.time_operator * ops.square(time), axis=-1)
        scores = (
            self.scores
            + query_term[:, :, :, None]
            + key_term[:, :, None, :]
            + time_term[None, :, None, None]
        )
        weights = ops.softmax(scores, axis=-1)
        attended = ops.matmul(weights, split_heads(values, ops.shape(scores)[1]))
        return merge_heads(zero_unseeing(attended, self.sees))


@keras.saving.register_keras_serializable("transevolve")
class LiteralAttention(TimeEvolvingAttention):
    """Softmax(A0 + A1 T^l + T^l A2 + A3 (T^l * T^l)) values, equation 9.

    Holds every weight of the paper, the inert `key_time_kernel` = W~k (d', D)
    included, so parameter counts match Table 2. It decodes as the factored form does.
    See `TimeEvolvingAttention` for the arguments.
    """

    inert_weights = ("key_time_kernel",)

    def build(self, x_shape, context_shape=None):
        super().build(x_shape, context_shape)
        self.key_time_kernel = self._add_kernel(
            "key_time_kernel", (3 / self.projected_dim) ** 0.5
        )

    def call(self, x, context, padding_mask=None, training=None, memory=None):
        """Computes the operators of equation 6: `LiteralState`."""
        queries, keys, _ = self.project(x, context, training)
        positions, key_positions = self.positions(x, context)
        rows = self.by_head(queries * self.scale, positions)
        columns = self.by_head(keys, key_positions)
        relative = self.operator.relative
        asking = rows if relative is None else relative.queries(rows)
        scores = ops.matmul(asking, ops.swapaxes(columns, 2, 3))
        if relative is not None:
            num_queries, num_keys = ops.shape(scores)[-2:]
            start = self.operator.first_distance(num_queries, num_keys)
            scores = relative.add(scores, relative.numbers(rows), start)
        if self.causal:
            future = is_future(*ops.shape(scores)[-2:])
            scores += MASKED * ops.cast(future, scores.dtype)
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
            time_vectors=self.time_vectors(),
            sees=sees_a_key(padding_mask, ops.shape(x)[1], self.causal),
        )
