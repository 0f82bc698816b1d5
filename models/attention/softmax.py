"""Softmax attention: the Transformer's."""

from typing import Any, NamedTuple

from keras import ops

from models.attention.cache import Slots
from models.attention.heads import (
    MASKED,
    merge_heads,
    scaled_scores,
    sees_a_key,
    split_heads,
    zero_unseeing,
)
from models.attention.mechanism import Attention
from models.dense import seeded_dense
from models.products import with_gradients


class KeysAndValues(NamedTuple):
    """Of a source: (batch, heads, length, d/H) each; of earlier tokens: `Slots`.

    A cache holds 2 d numbers a token and layer.
    """

    keys: Any
    values: Any


class SoftmaxState(NamedTuple):
    """Queries, scaled, keys and values by head, and which keys are visible.

    Attributes:
      queries, keys, values: (batch, heads, length, d/H).
      visible: (batch, 1, 1, keys), true at real tokens; None if all are real.
      seeing: of `models.attention.heads.sees_a_key`.
    """

    queries: Any
    keys: Any
    values: Any
    visible: Any
    seeing: Any


class SoftmaxStep(NamedTuple):
    """What was attended at a position, (batch, beams, d), and the new cache."""

    attended: Any
    cache: Any


class SoftmaxAttention(Attention):
    """softmax(Q K^T / sqrt(d/H)) V, equation 1 of the paper.

    Projections of one input are one product; none has a bias, as in TransEvolve. The
    values are projected too: those that the model hands over are left aside. See
    `Attention` for the arguments and methods.
    """

    def build(self, x_shape, context_shape=None):
        self.width = x_shape[-1]
        if self.width % self.num_heads:
            raise ValueError(
                f"width {self.width} must be a multiple of num_heads={self.num_heads}"
            )
        if self.use == "cross":
            self.query = self._projection("query", 1)
            self.key_value = self._projection("key_value", 2)
            layers = (self.query, self.key_value)
        else:
            self.query_key_value = self._projection("query_key_value", 3)
            layers = (self.query_key_value,)
        for layer in layers:
            layer.build(x_shape)

    def _projection(self, name, count):
        same = {"use_bias": False, "dtype": self.dtype_policy}
        return seeded_dense(count * self.width, name, self.seed, **same)

    def call(self, x, context, padding_mask=None, training=None):
        """The `SoftmaxState` of (batch, queries, d) and (batch, keys, d)."""
        queries, keys, values = map(self._by_head, self._project(x, context))
        visible = None if padding_mask is None else padding_mask[:, None, None, :]
        seeing = sees_a_key(padding_mask, ops.shape(x)[1], self.causal)
        return SoftmaxState(self._scaled(queries), keys, values, visible, seeing)

    def attend(self, state, depth, values):
        """Equation 1: (batch, queries, d), heads merged."""
        scores = scaled_scores(state.queries, state.keys, self.causal)
        weights = self._weights(scores, state.visible)
        attended = ops.matmul(weights, state.values)
        return merge_heads(zero_unseeing(attended, state.seeing))

    def empty_cache(self, batch_size, beams):
        """`KeysAndValues`."""
        size = self.width // self.num_heads
        slots = Slots.empty(batch_size, beams, self.num_heads, size, self.compute_dtype)
        return KeysAndValues(slots, slots)

    def step(self, x, constants, cache, visible):
        """The `SoftmaxStep` of (batch, beams, d)."""
        queries, keys, values = map(self._by_head, self._parts(self.query_key_value(x)))
        cache = KeysAndValues(cache.keys.append(keys), cache.values.append(values))
        scores = cache.keys.scores(self._scaled(queries))
        weights = self._weights(scores, visible[:, None])
        return SoftmaxStep(merge_heads(cache.values.weighted_sum(weights)), cache)

    def attend_step(self, state, depth, values):
        """What the step has attended."""
        return state.attended, state

    def memory(self, context, values, padding_mask=None):
        """`KeysAndValues` of a source, which are visible, and whether any is."""
        visible = None if padding_mask is None else padding_mask[:, None, None, :]
        parts = self._parts(self.key_value(context))
        seeing = sees_a_key(padding_mask, 1, causal=False)
        return KeysAndValues(*map(self._by_head, parts)), visible, seeing

    def attend_to_memory(self, x, memory):
        """(batch, beams, d) for each depth, all the same."""
        (keys, values), visible, seeing = memory
        queries = self._by_head(self.query(x))
        state = SoftmaxState(self._scaled(queries), keys, values, visible, seeing)
        return [self.attend(state, 0, None)] * self.num_depths

    def products(self, batch_size, length):
        d, units = self.width, batch_size * self.num_heads
        size, tokens = d // self.num_heads, batch_size * length
        return [
            *with_gradients("query, key, value", 1, 1, (tokens, d, 3 * d)),
            *with_gradients("Q K^T", 1, units, (length, size, length), "right"),
            *with_gradients("A V", 1, units, (length, length, size)),
        ]

    def _project(self, x, context):
        """Queries, keys and values, heads merged."""
        if self.use == "cross":
            return self.query(x), *self._parts(self.key_value(context))
        queries, keys, values = self._parts(self.query_key_value(x))
        if context is not x:
            _, keys, values = self._parts(self.query_key_value(context))
        return queries, keys, values

    def _parts(self, x):
        return ops.split(x, x.shape[-1] // self.width, axis=-1)

    def _by_head(self, x):
        return split_heads(x, self.num_heads)

    def _scaled(self, queries):
        return queries * queries.shape[-1] ** -0.5

    def _weights(self, scores, visible):
        if visible is not None:
            scores += MASKED * (1 - ops.cast(visible, scores.dtype))
        return ops.softmax(scores, axis=-1)
