"""Time-evolving attention with feature maps: linear in the length."""

import keras
from keras import ops

from models.attention import linear_decoding, linear_safe, linear_sums
from models.attention.evolving import TimeEvolvingAttention
from models.attention.heads import MASKED, split_heads
from models.attention.linear_features import LinearFeatures
from models.dense import linear
from models.products import with_gradients


@keras.saving.register_keras_serializable("transevolve")
class LinearEvolvingAttention(LinearFeatures, TimeEvolvingAttention):
    """Equation 9 with phi(q) . phi(k) for exp(A0), the paper's future work.

    As in the exact form only the key-side term b^l acts (docs/attention.md), here as a
    factor e^(b^l) on a key. Queries and keys are scaled by the square root of the
    scores' scale each. With one depth and b = 0 it is the linear Transformer.

    See `TimeEvolvingAttention` and `LinearFeatures` for the arguments.
    """

    def build(self, x_shape, context_shape=None):
        super().build(x_shape, context_shape)
        self.build_features(self.projected_dim // self.num_heads)

    def call(self, x, context, padding_mask=None, training=None):
        """See `Attention`; a `linear_sums.LinearState`."""
        draw = self.draw(training)
        queries = self.query_dropout(self._queries(x), training=training)
        keys = self.key_dropout(self._keys(context), training=training)
        keys = self._features_and_biases(keys, self.directions(), padding_mask, draw)
        queries = self.query_features(split_heads(queries, self.num_heads), draw)
        size = self.hidden_dim // self.num_heads
        num_queries = None if x is context else ops.shape(x)[1]
        return linear_sums.start(queries, keys, self.causal, size, num_queries)

    def attend(self, state, depth, values):
        """(batch, queries, d), heads merged, of values (batch, keys, d)."""
        return linear_sums.attend(state, depth, ops.cast(values, self.compute_dtype))

    def directions(self):
        """Of keys that are scaled, as `_keys` are."""
        return super().directions() / self._root

    def empty_cache(self, batch_size, beams):
        """A `State` a depth; see `linear_decoding.LinearStep`."""
        size = self.hidden_dim // self.num_heads
        features = self.feature_map.num_features
        return linear_decoding.empty_cache(
            batch_size, beams, self.num_heads, features, size, self.num_depths
        )

    def step(self, x, constants, cache, visible):
        """The `LinearStep` of (batch, beams, d)."""
        queries = split_heads(self._queries(x), self.num_heads)
        keys = self._features_and_biases(self._keys(x), constants)
        return linear_decoding.step(self.query_features(queries), keys, cache)

    def attend_step(self, state, depth, values):
        """What is attended at a depth, (batch, beams, d), and the next `LinearStep`."""
        return linear_decoding.attend_step(state, depth, values)

    def memory(self, context, values, padding_mask=None):
        """The `Sums` of a source: of one size, whatever its length."""
        keys = self._features_and_biases(
            self._keys(context), self.directions(), padding_mask
        )
        return linear_decoding.memory(keys, values)

    def attend_to_memory(self, x, memory):
        """(batch, beams, d) for each depth."""
        queries = split_heads(self._queries(x), self.num_heads)
        attended = linear_decoding.attend_to_memory(
            self.query_features(queries), memory
        )
        return [ops.cast(one, self.compute_dtype) for one in attended]

    @property
    def _root(self):
        """Factor on queries and on keys."""
        return self.scale**0.5

    # The kernels are scaled, which have fewer numbers than what they make.

    def _queries(self, x):
        return linear(x, self.query_kernel * self._root)

    def _keys(self, context):
        return linear(context, self.key_kernel * self._root)

    def _features_and_biases(self, keys, directions, padding_mask=None, draw=None):
        """`Keys` of K, (batch, keys, D)."""
        biases = ops.cast(linear(keys, directions), "float32")
        biases = split_heads(biases, self.num_heads)
        keys = split_heads(keys, self.num_heads)
        features, logs = self.key_features(keys, draw)
        if logs is not None:
            biases = biases + logs
        if padding_mask is not None:
            visible = ops.cast(padding_mask, "bool")[:, None, :, None]
            biases = ops.where(visible, biases, MASKED)
        return linear_safe.Keys(features, biases)

    def products(self, batch_size, length):
        """The projections, the biases, and those of `linear_sums`."""
        projection = (batch_size * length, self.hidden_dim, self.projected_dim)
        heads, depths = self.num_heads, self.num_depths
        biases = (batch_size * length, self.projected_dim, heads * depths)
        return [
            *with_gradients("query, key", 2, 1, projection),
            *with_gradients("biases", 1, 1, biases),
            *self.feature_map.products(batch_size * heads * length),
            *linear_sums.products(
                batch_size * heads,
                length,
                self.feature_map.num_features,
                self.hidden_dim // heads,
                depths,
                self.causal,
            ),
        ]
