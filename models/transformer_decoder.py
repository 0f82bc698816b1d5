"""Baseline: a pre-norm Transformer decoder of the same depth, width and heads."""

from typing import Any, NamedTuple

import keras
from keras import ops
from keras.layers import Dense, Dropout, LayerNormalization

from models.decoding_cache import write
from models.feed_forward import FeedForward
from models.time_evolving_attention import (
    MASKED,
    merge_heads,
    scaled_scores,
    split_heads,
)


class KeysAndValues(NamedTuple):
    """Of one attention, (batch, heads, length or slots, d/H) each."""

    keys: Any
    values: Any


class SourceMemory(NamedTuple):
    """What a layer's cross-attention keeps of the encoder's output."""

    of_source: KeysAndValues
    visible: Any


@keras.saving.register_keras_serializable("transevolve")
class TransformerDecoderLayer(keras.layers.Layer):
    """Causal self-attention, cross-attention and feed-forward, pre-normalised.

    As in `TransformerLayer`: no projection has a bias, projections of one input are
    one product, dropout is on each sublayer's output.

    Args:
      num_heads: H. Must divide the width.
      ffn_dim: inner size of the feed-forward.
      dropout: rate.
      seed: of the dropout.
    """

    def __init__(self, num_heads, ffn_dim, dropout=0.0, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.dropout = dropout
        self.seed = seed
        same = {"dtype": self.dtype_policy}
        self.self_norm = LayerNormalization(name="self_attention_norm", **same)
        self.cross_norm = LayerNormalization(name="cross_attention_norm", **same)
        self.feed_forward_norm = LayerNormalization(name="ffn_norm", **same)
        self.self_dropout, self.cross_dropout, self.feed_forward_dropout = (
            Dropout(dropout, seed=seed + i, **same) for i in range(3)
        )

    def build(self, x_shape, encoded_shape=None):
        width = x_shape[-1]
        if width % self.num_heads:
            raise ValueError(
                f"width {width} must be a multiple of num_heads={self.num_heads}"
            )

        def projection(name, units):
            return Dense(units, use_bias=False, dtype=self.dtype_policy, name=name)

        self.query_key_value = projection("query_key_value", 3 * width)
        self.self_projection = projection("self_projection", width)
        self.query = projection("query", width)
        self.key_value = projection("key_value", 2 * width)
        self.cross_projection = projection("cross_projection", width)
        same = {"dtype": self.dtype_policy}
        self.feed_forward = FeedForward(
            Dense(self.ffn_dim, name="expand", **same),
            Dense(width, name="contract", **same),
            name="feed_forward",
            **same,
        )
        for layer in (
            self.self_norm,
            self.query_key_value,
            self.self_projection,
            self.self_dropout,
            self.cross_norm,
            self.query,
            self.key_value,
            self.cross_projection,
            self.cross_dropout,
            self.feed_forward_norm,
            self.feed_forward,
            self.feed_forward_dropout,
        ):
            layer.build(x_shape)

    def call(self, x, encoded, target_mask=None, source_mask=None, training=None):
        """Runs the layer.

        Args:
          x: (batch, target, width).
          encoded: (batch, source, width), output of the encoder.
          target_mask: (batch, target), true at real tokens. Not needed: real tokens
            come first, so none sees padding.
          source_mask: (batch, source), likewise; None if all are real.

        Returns:
          (batch, target, width).
        """
        length = x.shape[1] if x.shape[1] is not None else ops.shape(x)[1]
        causal = ops.arange(length)[:, None] >= ops.arange(length)[None, :]
        queries, of_target = self._self_projections(x)
        attended = self._attend(queries, of_target, causal)
        x = self._add_self(x, attended, training)
        attended = self._attend(
            self._cross_queries(x), self._of_source(encoded), _keys(source_mask)
        )
        x = self._add_cross(x, attended, training)
        return self._transform(x, training)

    def _self_projections(self, x):
        projected = self.query_key_value(self.self_norm(x))
        queries, *rest = (
            split_heads(part, self.num_heads)
            for part in ops.split(projected, 3, axis=-1)
        )
        return queries, KeysAndValues(*rest)

    def _cross_queries(self, x):
        return split_heads(self.query(self.cross_norm(x)), self.num_heads)

    def _of_source(self, encoded):
        parts = ops.split(self.key_value(encoded), 2, axis=-1)
        return KeysAndValues(*(split_heads(part, self.num_heads) for part in parts))

    def _attend(self, queries, keys_and_values, visible=None):
        keys, values = keys_and_values
        scale = queries.shape[-1] ** -0.5
        scores = scaled_scores(queries * scale, keys, causal=False)
        if visible is not None:
            scores = ops.where(visible, scores, MASKED)
        return merge_heads(ops.matmul(ops.softmax(scores, axis=-1), values))

    def _add_self(self, x, attended, training=None):
        projected = self.self_projection(attended)
        return x + self.self_dropout(projected, training=training)

    def _add_cross(self, x, attended, training=None):
        projected = self.cross_projection(attended)
        return x + self.cross_dropout(projected, training=training)

    def _transform(self, x, training=None):
        transformed = self.feed_forward(self.feed_forward_norm(x))
        return x + self.feed_forward_dropout(transformed, training=training)

    def memory(self, encoded, source_mask):
        """`SourceMemory` of an encoder output, for `step`."""
        return SourceMemory(self._of_source(encoded), _keys(source_mask))

    def empty_cache(self, batch_size):
        """`KeysAndValues` without slots; 2 d numbers each."""
        size = self.query.units // self.num_heads
        zeros = ops.zeros((batch_size, self.num_heads, 0, size), self.compute_dtype)
        return KeysAndValues(zeros, zeros)

    def step(self, x, memory, cache, position, visible):
        """Runs the layer for the tokens of one position.

        Args:
          x: (batch, beams, width).
          memory: `SourceMemory`.
          cache: `KeysAndValues` of earlier positions.
          position: scalar, int32.
          visible: bool (batch, beams, slots), see `models.decoding_cache`.

        Returns:
          (batch, beams, width), and the cache with this position.
        """
        queries, new = self._self_projections(x)
        cache = KeysAndValues(
            *(write(old, part, position) for old, part in zip(cache, new, strict=True))
        )
        x = self._add_self(x, self._attend(queries, cache, visible[:, None]))
        attended = self._attend(self._cross_queries(x), *memory)
        return self._transform(self._add_cross(x, attended)), cache

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "seed": self.seed,
        }


def _keys(mask):
    """A mask of keys for scores (batch, heads, queries, keys); None stays None."""
    return None if mask is None else ops.cast(mask, "bool")[:, None, None, :]


@keras.saving.register_keras_serializable("transevolve")
class TransformerDecoder(keras.layers.Layer):
    """`num_layers` pre-norm decoder layers and a closing LayerNorm.

    Args:
      num_layers: 6 in the paper.
      num_heads, ffn_dim, dropout: as in `TransformerDecoderLayer`.
      seed: non-negative integer; each layer derives its own.
    """

    def __init__(self, num_layers, num_heads, ffn_dim, dropout=0.0, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.dropout = dropout
        self.seed = seed
        self.layers = [
            TransformerDecoderLayer(
                num_heads,
                ffn_dim,
                dropout,
                seed=1000 * seed + 100 * index,
                dtype=self.dtype_policy,
                name=f"layer_{index}",
            )
            for index in range(num_layers)
        ]
        self.output_norm = LayerNormalization(
            dtype=self.dtype_policy, name="output_norm"
        )

    def build(self, x_shape, encoded_shape=None):
        for layer in (*self.layers, self.output_norm):
            layer.build(x_shape)

    def call(self, x, encoded, target_mask=None, source_mask=None, training=None):
        """Decodes (batch, target, width); see `TransformerDecoderLayer.call`."""
        for layer in self.layers:
            x = layer(x, encoded, target_mask, source_mask, training=training)
        return self.output_norm(x)

    def memory(self, encoded, source_mask):
        """What `step` needs of the source, layer by layer."""
        return [layer.memory(encoded, source_mask) for layer in self.layers]

    def empty_cache(self, batch_size):
        """What `step` keeps of earlier tokens, layer by layer: no slots yet."""
        return [layer.empty_cache(batch_size) for layer in self.layers]

    def step(self, x, memory, cache, position, visible):
        """Decodes one position; see `TransformerDecoderLayer.step`."""
        new_cache = []
        for layer, of_source, of_target in zip(self.layers, memory, cache, strict=True):
            x, of_target = layer.step(x, of_source, of_target, position, visible)
            new_cache.append(of_target)
        return self.output_norm(x), new_cache

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "seed": self.seed,
        }
