"""Baseline: a Transformer decoder of the same depth, width and heads."""

import keras

from models.layers.normalization import LayerNormalization
from models.stack import DecoderStack
from models.transformer.layer import TransformerLayer


@keras.saving.register_keras_serializable("transevolve")
class TransformerDecoderLayer(TransformerLayer):
    """Causal self-attention, cross-attention, feed-forward. See `TransformerLayer`."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.self_norm = self._norm("self_attention_norm")
        self.self_attention = self._attention("self_attention", "causal")
        self.self_dropout = self._dropout("self_attention_dropout")
        self.cross_norm = self._norm("cross_attention_norm")
        self.cross_attention = self._attention("cross_attention", "cross")
        self.cross_dropout = self._dropout("cross_attention_dropout")

    def build(self, x_shape, encoded_shape=None):
        width = x_shape[-1]
        self.self_projection = self._projection("self_projection", width)
        self.cross_projection = self._projection("cross_projection", width)
        self._build(
            x_shape,
            self.self_norm,
            self.self_attention,
            self.self_projection,
            self.self_dropout,
            self.cross_norm,
            self.cross_attention,
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

        def attend(x, stage):
            made = self.self_attention(x, x, training=training)
            return self.self_attention.read(made, 0, x)

        def attend_to_source(x):
            made = self.cross_attention(x, encoded, source_mask, training=training)
            return self.cross_attention.read(made, 0, encoded)

        return self._sublayers(x, attend, attend_to_source, training)

    def _sublayers(self, x, attend, attend_to_source, training=None):
        """Moves (batch, target, width) by both attentions and the feed-forward.

        Args:
          attend: function of the input of its sublayer and of the number of an offset.
          attend_to_source: function of the input of its sublayer.
        """

        def from_target(x, stage):
            projected = self.self_projection(attend(x, stage))
            return self.self_dropout(projected, training=training)

        def from_source(x, stage):
            projected = self.cross_projection(attend_to_source(x))
            return self.cross_dropout(projected, training=training)

        increments = (
            self._increment(self.self_norm, from_target),
            self._increment(self.cross_norm, from_source),
            self._feed_forward(training),
        )
        return self._step(x, increments)

    def source_cache(self, encoded, source_mask):
        """What `step` needs that no target token changes: constants of the attention to
        earlier tokens, and the cache of an encoder output."""
        source = self.cross_attention.source_cache(encoded, encoded, source_mask)
        return self.self_attention.constants(), source

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens, for each offset: nothing yet."""
        empty = self.self_attention.empty_cache
        return [empty(batch_size, beams) for _ in self.offsets]

    def step(self, x, source_cache, cache, visible, position=None):
        """Runs the layer for the tokens of one position.

        Args:
          x: (batch, beams, width).
          source_cache: of `source_cache`.
          cache: of earlier positions.
          visible, position: see `Attention`.

        Returns:
          (batch, beams, width), and the cache with this position.
        """
        constants, source = source_cache
        cache = list(cache)
        attend = self._over_cache(
            self.self_attention, constants, cache, visible, position
        )

        def attend_to_source(x):
            (attended,) = self.cross_attention.read_source(x, source)
            return attended

        return self._sublayers(x, attend, attend_to_source), cache


@keras.saving.register_keras_serializable("transevolve")
class TransformerDecoder(DecoderStack):
    """`num_layers` decoder layers in a row, and a closing LayerNorm."""

    layer_class, closing_norm = TransformerDecoderLayer, LayerNormalization
