"""The linear Transformer's attention."""

import keras
from keras import ops

from models.attention import linear_decoding, linear_safe, linear_sums
from models.attention.heads import MASKED
from models.attention.linear_features import LinearFeatures
from models.attention.softmax import SoftmaxAttention, SoftmaxStep
from models.products import with_gradients


@keras.saving.register_keras_serializable("transevolve")
class LinearAttention(LinearFeatures, SoftmaxAttention):
    """phi(q) . phi(k) for weights (Katharopoulos et al. 2020, equation 5).

    Projections are those of `SoftmaxAttention`, so weights carry over. Neither queries
    nor keys are scaled, but for FAVOR+, which stands in for the softmax: there both are
    scaled by (d/H)^-1/4.

    See `Attention` and `LinearFeatures` for the arguments.
    """

    def build(self, x_shape, context_shape=None):
        super().build(x_shape, context_shape)
        self.build_features(self.width // self.num_heads)

    def call(self, x, context, padding_mask=None, training=None):
        """See `Attention`; a `linear_sums.LinearState`, and the values."""
        queries, keys, values = self._project(x, context)
        draw = self.draw(training)
        queries = self._queries(queries, draw)
        keys = self._keys(keys, padding_mask, draw)
        size = self.width // self.num_heads
        num_queries = None if x is context else ops.shape(x)[1]
        return linear_sums.start(queries, keys, self.causal, size, num_queries), values

    def attend(self, state, depth, values):
        """(batch, queries, d), heads merged."""
        state, values = state
        return linear_sums.attend(state, 0, values)

    def empty_cache(self, batch_size, beams):
        """A `State`; see `linear_decoding.LinearStep`."""
        size, features = self.width // self.num_heads, self.feature_map.num_features
        return linear_decoding.empty_cache(
            batch_size, beams, self.num_heads, features, size, 1
        )

    def step(self, x, constants, cache, visible):
        """The `LinearStep` of (batch, beams, d), and its values."""
        queries, keys, values = self._parts(self.query_key_value(x))
        queries, keys = self._queries(queries), self._keys(keys)
        step = linear_decoding.step(queries, keys, cache)
        attended, step = linear_decoding.attend_step(step, 0, values)
        return SoftmaxStep(attended, step.cache)

    def memory(self, context, values, padding_mask=None):
        """The `Sums` of a source: of one size, whatever its length."""
        keys, values = self._parts(self.key_value(context))
        return linear_decoding.memory(self._keys(keys, padding_mask), values)

    def attend_to_memory(self, x, memory):
        """(batch, beams, d) for each depth, all the same."""
        queries = self._queries(self.query(x))
        (attended,) = linear_decoding.attend_to_memory(queries, memory)
        return [ops.cast(attended, self.compute_dtype)] * self.num_depths

    def products(self, batch_size, length):
        d, heads = self.width, self.num_heads
        return [
            *with_gradients("query, key, value", 1, 1, (batch_size * length, d, 3 * d)),
            *self.feature_map.products(batch_size * heads * length),
            *linear_sums.products(
                batch_size * heads,
                length,
                self.feature_map.num_features,
                d // heads,
                1,
                self.causal,
            ),
        ]

    def _scaled(self, x):
        return x * x.shape[-1] ** -0.25 if self.feature_map.is_softmax else x

    def _queries(self, queries, draw=None):
        """phi of (batch, queries, d)."""
        return self.query_features(self._scaled(self._by_head(queries)), draw)

    def _keys(self, keys, padding_mask=None, draw=None):
        """`Keys` of (batch, keys, d)."""
        keys = self._by_head(keys)
        features, logs = self.key_features(self._scaled(keys), draw)
        if logs is None:
            logs = ops.zeros_like(keys[..., :1], "float32")
        if padding_mask is not None:
            visible = ops.cast(padding_mask, "bool")[:, None, :, None]
            logs = ops.where(visible, logs, MASKED)
        return linear_safe.Keys(features, logs)
