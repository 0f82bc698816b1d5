"""The Transformer's attention: queries, keys and values of its own, read once."""

from typing import Any, NamedTuple

import keras
from keras import ops

from models.attention import reading
from models.attention.attention import Attention
from models.attention.heads import masked, merge_heads, split_heads, zero_unseeing
from models.attention.memory import AfterStates, Positions
from models.attention.operator import STATES
from models.layers.dense import seeded_dense


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

    Args:
      kernel_scale: of the projections, see `seeded_dense`.

    See `Attention` for the other arguments and the methods.
    """

    def __init__(self, *, kernel_scale=1.0, **kwargs):
        super().__init__(**kwargs)
        self.kernel_scale = kernel_scale

    def build(self, x_shape, context_shape=None):
        self.hidden_dim = x_shape[-1]
        if self.hidden_dim % self.num_heads:
            raise ValueError(
                f"width {self.hidden_dim} must be a multiple of "
                f"num_heads={self.num_heads}"
            )
        names, layers = self.projections, ()
        if self.use == "cross":
            self.query = self._projection("query", 1)
            self.key_value = self._projection("key_value", 2)
            layers = (self.query, self.key_value)
        elif names:
            self.query_key_value = self._projection("_".join(names), len(names))
            layers = (self.query_key_value,)
        for layer in layers:
            layer.build(x_shape)
        self.build_operator(self.head_size)

    @property
    def projections(self):
        """Names of what is projected."""
        return (*self.operator.projections, "value")

    def _projection(self, name, count):
        options = {"use_bias": False, "dtype": self.dtype_policy}
        return seeded_dense(
            count * self.hidden_dim, name, self.seed, self.kernel_scale, **options
        )

    @property
    def scale(self):
        """Factor on the products of queries and keys."""
        return self.head_size**-0.5 if self.operator.is_softmax else 1.0

    def call(self, x, context, padding_mask=None, training=None, memory=None):
        """`Attended`: the values come from the context, so all is read at once. After a
        memory its `cache` is that for the text after this one."""
        if isinstance(memory, Positions):
            context, mask = memory.before(context, padding_mask)
            attended = self.call(x, context, mask, training)
            return attended._replace(cache=memory.after(context, mask))
        if padding_mask is not None:
            padding_mask = ops.cast(padding_mask, "bool")
        inputs, biases, values = self._prepared(x, context, padding_mask, training)
        length = ops.shape(x)[1]
        if self.operator.rows_sum_to_one:
            values = split_heads(values, self.num_heads)
            attended = self.operator.read_once(inputs, biases, values)
            sees = self.operator.sees((), padding_mask, length)
            return Attended(merge_heads(zero_unseeing(attended, sees)))
        if biases is None:
            biases = self._zeros(values)
        arguments = self.operator, inputs, biases, padding_mask, length, self.head_size
        if memory is not None:
            made = AfterStates.start(*arguments, memory)
            return Attended(made.read(0, values), made.left())
        return Attended(reading.read(reading.start(*arguments), 0, values))

    def _prepared(self, x, context, padding_mask, training):
        """The inputs of the operator, biases as of `_keys_and_biases`, and values."""
        draw = self.operator.draw(training)
        queries, keys, values = self._project(x, context)
        positions, key_positions = self.positions(x, context)
        queries = self._prepared_queries(queries, draw, positions)
        keys, biases = self._keys_and_biases(
            keys, values, padding_mask, draw, key_positions
        )
        further = self.operator.further_inputs(x, context, padding_mask, training)
        return self.operator.inputs(queries, keys, further), biases, values

    def read(self, made, number, values):
        """What was read: (batch, n, d), heads merged."""
        return made.attended

    def empty_cache(self, batch_size, beams):
        return self.operator.empty_cache(
            batch_size, beams, self.head_size, self.head_size, 0, self.compute_dtype
        )

    def empty_memory(self, batch_size, span):
        if self.operator.memory == STATES:
            return self.empty_cache(batch_size, 1)
        width = self.hidden_dim
        return Positions.empty(batch_size, span, width, 0, self.compute_dtype)

    def step(self, x, constants, cache, visible, position=None):
        made, values = self._step(x, cache, visible, position)
        attended, made = self.operator.read_step(made, 0, values)
        return Attended(attended, made.cache)

    def _step(self, x, cache, visible, position):
        """What the reads of one position share, and its values."""
        queries, keys, values = self._projected(x)
        positions = self.position_of_step(position)
        keys, biases = self._keys_and_biases(keys, values, positions=positions)
        queries = self._prepared_queries(queries, positions=positions)
        further = self.operator.further_inputs_of_step(x, position)
        inputs = self.operator.inputs_of_step(queries, keys, further)
        return self.operator.step(inputs, biases, cache, visible), values

    def read_step(self, made, number, values):
        return made.attended, made

    def source_cache(self, context, values, padding_mask=None):
        keys, values = self._parts(self.key_value(context))
        keys, biases = self._keys_and_biases(keys, values, padding_mask)
        values = split_heads(values, self.num_heads)
        return self.operator.source_cache(keys, biases, padding_mask, values)

    def read_source(self, x, cache):
        queries = self._prepared_queries(self.query(x))
        return self.operator.read_source(queries, cache)

    def _prepared_queries(self, queries, draw=None, positions=None):
        if queries is None:
            return None
        queries = self.by_head(queries, positions)
        return self.operator.prepare_queries(queries, self.scale, draw)

    def _keys_and_biases(self, keys, values, mask=None, draw=None, positions=None):
        """Keys, and what is added to their scores, (batch, heads, m, 1), or None."""
        biases = None
        if keys is not None:
            keys = self.by_head(keys, positions)
            keys, biases = self.operator.prepare_keys(keys, self.scale, mask, draw)
        if biases is None and mask is not None:
            biases = self._zeros(values)
        return keys, None if biases is None else masked(biases, mask)

    def _zeros(self, values):
        """Biases that change nothing, float32."""
        batch, length, _ = ops.shape(values)
        # Where they are added to scores, one for all heads will do.
        heads = 1 if self.operator.rows_sum_to_one else self.num_heads
        return ops.zeros((batch, heads, length, 1), "float32")

    def _project(self, x, context):
        """Queries, keys and values, heads merged; None for what is not projected."""
        if self.use == "cross":
            return self.query(x), *self._parts(self.key_value(context))
        queries, keys, values = self._projected(x)
        if context is not x:
            _, keys, values = self._projected(context)
        return queries, keys, values

    def _projected(self, x):
        """Queries, keys and values of one input."""
        parts = self._parts(self.query_key_value(x))
        projected = dict(zip(self.projections, parts, strict=True))
        return [projected.get(name) for name in ("query", "key", "value")]

    def _parts(self, x):
        return ops.split(x, x.shape[-1] // self.hidden_dim, axis=-1)
