"""Baseline: a pre-norm Transformer decoder of the same depth, width and heads."""

from typing import Any, NamedTuple

import keras
from keras import ops

from models import decoding_cache as buffers
from models.time_evolving_attention import merge_heads, split_heads
from models.transformer_layer import TransformerLayer, TransformerStack, visible_keys


class KeysAndValues(NamedTuple):
    """Of one attention: (batch, heads, length, d/H), or buffers of that size.

    A cache holds 2 d numbers a token and layer; see `models.decoding_cache`.
    """

    keys: Any
    values: Any


@keras.saving.register_keras_serializable("transevolve")
class TransformerDecoderLayer(TransformerLayer):
    """Causal self-attention, cross-attention, feed-forward. See `TransformerLayer`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.self_norm = self._norm("self_attention_norm")
        self.self_dropout = self._dropout("self_attention_dropout")
        self.cross_norm = self._norm("cross_attention_norm")
        self.cross_dropout = self._dropout("cross_attention_dropout")

    def build(self, x_shape, encoded_shape=None):
        width = x_shape[-1]
        self.query_key_value = self._projection(
            "query_key_value", 3 * width, "self_attention"
        )
        self.self_projection = self._projection("self_projection", width)
        self.query = self._projection("query", width, "cross_attention")
        self.key_value = self._projection("key_value", 2 * width, "cross_attention")
        self.cross_projection = self._projection("cross_projection", width)
        self._build(
            x_shape,
            self.self_norm,
            self.query_key_value,
            self.self_projection,
            self.self_dropout,
            self.cross_norm,
            self.query,
            self.key_value,
            self.cross_projection,
            self.cross_dropout,
        )

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
        queries, of_target = self._self_projections(x)
        attended = self._attend(queries, *of_target, causal=True)
        x = self._add_self(x, attended, training)
        of_source = self._of_source(encoded)
        return self._rest(x, of_source, visible_keys(source_mask), training)

    def _self_projections(self, x):
        queries, *rest = self._split(self.query_key_value(self.self_norm(x)), 3)
        return queries, KeysAndValues(*rest)

    def _of_source(self, encoded):
        return KeysAndValues(*self._split(self.key_value(encoded), 2))

    def _split(self, x, count):
        parts = ops.split(x, count, axis=-1)
        return [split_heads(part, self.num_heads) for part in parts]

    def _add_self(self, x, attended, training=None):
        projected = self.self_projection(attended)
        return x + self.self_dropout(projected, training=training)

    def _rest(self, x, of_source, visible, training=None):
        """Adds cross-attention's output, then the feed-forward's."""
        queries = split_heads(self.query(self.cross_norm(x)), self.num_heads)
        attended = self._attend(queries, *of_source, visible)
        projected = self.cross_projection(attended)
        x += self.cross_dropout(projected, training=training)
        return self._transform(x, training)

    def memory(self, encoded, source_mask):
        """What `step` needs of the source: `KeysAndValues`, and which are visible."""
        return self._of_source(encoded), visible_keys(source_mask)

    def empty_cache(self, batch_size, beams):
        """`KeysAndValues` without settled slots."""
        size = self.query.units // self.num_heads
        buffer = buffers.empty(
            batch_size, beams, self.num_heads, size, self.compute_dtype
        )
        return KeysAndValues(buffer, buffer)

    def step(self, x, memory, cache, visible):
        """Runs the layer for the tokens of one position.

        Args:
          x: (batch, beams, width).
          memory: from `memory`.
          cache: `KeysAndValues` of earlier positions.
          visible: from `models.decoding_cache.visible_slots`.

        Returns:
          (batch, beams, width), and the cache with this position.
        """
        queries, new = self._self_projections(x)
        cache = KeysAndValues(
            buffers.append(cache.keys, new.keys),
            buffers.append(cache.values, new.values),
        )
        scores = buffers.scores(self._scaled(queries), cache.keys)
        weights = self._weights(scores, visible[:, None])
        attended = merge_heads(buffers.weighted_sum(weights, cache.values))
        x = self._add_self(x, attended)
        return self._rest(x, *memory), cache


@keras.saving.register_keras_serializable("transevolve")
class TransformerDecoder(TransformerStack):
    """Decoder layers in a row. See `TransformerStack` for the arguments."""

    layer_class = TransformerDecoderLayer

    def build(self, x_shape, encoded_shape=None):
        self._build(x_shape)

    def call(self, x, encoded, target_mask=None, source_mask=None, training=None):
        """Decodes (batch, target, width); see `TransformerDecoderLayer.call`."""
        for layer in self.layers:
            x = layer(x, encoded, target_mask, source_mask, training=training)
        return self.output_norm(x)

    def memory(self, encoded, source_mask):
        """What `step` needs of the source, layer by layer."""
        return [layer.memory(encoded, source_mask) for layer in self.layers]

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens, layer by layer: none yet."""
        return [layer.empty_cache(batch_size, beams) for layer in self.layers]

    def step(self, x, memory, cache, visible):
        """Decodes one position; see `TransformerDecoderLayer.step`."""
        new_cache = []
        for layer, of_source, of_target in zip(self.layers, memory, cache, strict=True):
            x, of_target = layer.step(x, of_source, of_target, visible)
            new_cache.append(of_target)
        return self.output_norm(x), new_cache
