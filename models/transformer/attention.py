"""The Transformer's attention: queries, keys and values of its own, read once."""

from typing import Any, NamedTuple

import keras
from keras import ops

from models.attention import reading
from models.attention.attention import Attention
from models.attention.heads import masked, merge_heads, split_heads, zero_unseeing
from models.layers.dense import seeded_dense
from models.products import with_gradients


class Attended(NamedTuple):
    """What was read, heads merged, and in decoding the new cache."""

    attended: Any
    cache: Any = ()


@keras.saving.register_keras_serializable("transevolve")
class ProjectedAttention(Attention):
    """softmax(Q K^T / sqrt(d/H)) V, equation 1 of the paper, or another operator.

    Projections of one input are one product; none has a bias, as in TransEvolve. The
    values are projected too: those that the model hands over are left aside. Scores are
    scaled by 1/sqrt(d/H) where they stand for a softmax's.

    See `Attention` for the arguments and methods.
    """

    def build(self, x_shape, context_shape=None):
        self.hidden_dim = x_shape[-1]
        if self.hidden_dim % self.num_heads:
            raise ValueError(
                f"width {self.hidden_dim} must be a multiple of "
                f"num_heads={self.num_heads}"
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
        self.operator.build(self, self.head_size)

    def _projection(self, name, count):
        options = {"use_bias": False, "dtype": self.dtype_policy}
        return seeded_dense(count * self.hidden_dim, name, self.seed, **options)

    @property
    def scale(self):
        """Factor on the products of queries and keys."""
        return self.head_size**-0.5 if self.operator.is_softmax else 1.0

    def call(self, x, context, padding_mask=None, training=None):
        """`Attended`: the values come from the context, so all is read at once."""
        draw = self.operator.draw(training)
        if padding_mask is not None:
            padding_mask = ops.cast(padding_mask, "bool")
        queries, keys, values = self._project(x, context)
        queries = self._queries(queries, draw)
        keys, biases = self._keys_and_biases(keys, padding_mask, draw)
        if self.operator.rows_sum_to_one:
            values = split_heads(values, self.num_heads)
            attended = self.operator.read_once(queries, keys, biases, values)
            sees = self.operator.sees((), padding_mask, ops.shape(queries)[2])
            return Attended(merge_heads(zero_unseeing(attended, sees)))
        if biases is None:
            biases = ops.zeros_like(keys[..., :1], "float32")
        state = reading.start(
            self.operator, (queries, keys), biases, padding_mask, self.head_size
        )
        return Attended(reading.read(state, 0, values))

    def read(self, state, number, values):
        """What was read: (batch, n, d), heads merged."""
        return state.attended

    def empty_cache(self, batch_size, beams):
        return self.operator.empty_cache(
            batch_size, beams, self.head_size, self.head_size, 0, self.compute_dtype
        )

    def step(self, x, constants, cache, visible):
        queries, keys, values = self._parts(self.query_key_value(x))
        keys, biases = self._keys_and_biases(keys)
        state = self.operator.step(self._queries(queries), keys, biases, cache, visible)
        attended, state = self.operator.read_step(state, 0, values)
        return Attended(attended, state.cache)

    def read_step(self, state, number, values):
        return state.attended, state

    def source_cache(self, context, values, padding_mask=None):
        keys, values = self._parts(self.key_value(context))
        keys, biases = self._keys_and_biases(keys, padding_mask)
        values = split_heads(values, self.num_heads)
        return self.operator.source_cache(keys, biases, padding_mask, values)

    def read_source(self, x, cache):
        return self.operator.read_source(self._queries(self.query(x)), cache)

    def _keys_and_biases(self, keys, mask=None, draw=None):
        """Keys, and what is added to their scores, (batch, heads, m, 1), or None."""
        keys = split_heads(keys, self.num_heads)
        keys, biases = self.operator.prepare_keys(keys, self.scale, mask, draw)
        if biases is None and mask is not None:
            biases = ops.zeros_like(keys[..., :1], "float32")
        return keys, None if biases is None else masked(biases, mask)

    def _project(self, x, context):
        """Queries, keys and values, heads merged."""
        if self.use == "cross":
            return self.query(x), *self._parts(self.key_value(context))
        queries, keys, values = self._parts(self.query_key_value(x))
        if context is not x:
            _, keys, values = self._parts(self.query_key_value(context))
        return queries, keys, values

    def _parts(self, x):
        return ops.split(x, x.shape[-1] // self.hidden_dim, axis=-1)

    def products(self, batch_size, length):
        """The projections and those of the operator."""
        d = self.hidden_dim
        projections = (batch_size * length, d, 3 * d)
        return [
            *with_gradients("query, key, value", 1, 1, projections),
            *self.operator.products(
                batch_size * self.num_heads, length, self.head_size, self.head_size, 0
            ),
        ]
