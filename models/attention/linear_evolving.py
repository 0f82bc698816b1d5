"""Time-evolving attention with feature maps: linear in the length."""

import keras
from keras import ops

from models.attention import linear_decoding, linear_safe, linear_sums
from models.attention.evolving import TimeEvolvingAttention
from models.attention.heads import MASKED, merge_heads, split_heads
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
        queries, keys = self.project(x, context, training)
        draw = self.draw(training)
        keys = self._keys(keys, self.biases(keys), padding_mask, draw)
        queries = self.query_features(self._split(queries), draw)
        return linear_sums.start(
            queries, keys, self.causal, self.hidden_dim // self.num_heads
        )

    def attend(self, state, depth, values):
        """(batch, queries, d), heads merged, of values (batch, keys, d)."""
        values = split_heads(ops.cast(values, self.compute_dtype), self.num_heads)
        return merge_heads(linear_sums.attend(state, depth, values))

    def constants(self):
        """The `directions` that give b^l."""
        return self.directions()

    def empty_cache(self, batch_size, beams):
        """A `State` a depth; see `linear_decoding.LinearStep`."""
        size = self.hidden_dim // self.num_heads
        features = self.feature_map.num_features
        return linear_decoding.empty_cache(
            batch_size, beams, self.num_heads, features, size, self.num_depths
        )

    def step(self, x, constants, cache, visible):
        """The `LinearStep` of (batch, beams, d)."""
        queries, keys = self._decoded(x, x, constants)
        return linear_decoding.step(queries, keys, cache)

    def attend_step(self, state, depth, values):
        """What is attended at a depth, (batch, beams, d), and the next `LinearStep`."""
        return linear_decoding.attend_step(state, depth, values)

    def memory(self, context, values, padding_mask=None):
        """The `Sums` of a source: of one size, whatever its length."""
        _, keys = self._decoded(context, context, self.directions(), padding_mask)
        return linear_decoding.memory(keys, values)

    def attend_to_memory(self, x, memory):
        """(batch, beams, d) for each depth."""
        queries = self.query_features(self._split(linear(x, self.query_kernel)))
        attended = linear_decoding.attend_to_memory(queries, memory)
        return [ops.cast(one, self.compute_dtype) for one in attended]

    def _decoded(self, x, context, directions, padding_mask=None):
        """Features of queries and `Keys`, without dropout."""
        queries = self.query_features(self._split(linear(x, self.query_kernel)))
        keys = linear(context, self.key_kernel)
        biases = split_heads(linear(keys, directions), self.num_heads)
        return queries, self._keys(keys, biases, padding_mask)

    def _split(self, projected):
        return split_heads(projected * self.scale**0.5, self.num_heads)

    def _keys(self, keys, biases, padding_mask, draw=None):
        """`Keys` of K, (batch, keys, D), and b^l, (batch, heads, keys, L)."""
        features, logs = self.key_features(self._split(keys), draw)
        biases = ops.cast(biases, "float32")
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
            *linear_sums.products(
                batch_size * heads,
                length,
                self.feature_map.num_features,
                self.hidden_dim // heads,
                depths,
                self.causal,
            ),
        ]
