"""Baseline: a Transformer decoder of the same depth, width and heads."""

import keras

from models.layers.normalization import LayerNormalization
from models.stack import DecoderStack
from models.transformer.encoder import TransformerEncoderLayer


@keras.saving.register_keras_serializable("transevolve")
class TransformerDecoderLayer(TransformerEncoderLayer):
    """A causal encoder layer with attention to a source after that to the target.

    See `TransformerEncoderLayer` for the arguments.
    """

    attention_name, projection_name = "self_attention", "self_projection"

    def __init__(self, *, use="causal", **kwargs):
        super().__init__(use=use, **kwargs)
        self.cross_norm = self._norm("cross_attention_norm")
        self.cross_attention = self._attention("cross_attention", "cross")
        self.cross_dropout = self._dropout("cross_attention_dropout")

    def build(self, x_shape, encoded_shape=None):
        super().build(x_shape)

    def _build(self, shape, *layers):
        self.cross_projection = self._projection("cross_projection", shape[-1])
        super()._build(
            shape,
            *layers,
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

        def read_source(x):
            made = self.cross_attention(x, encoded, source_mask, training=training)
            return made.read(0, encoded)

        read = self._reads_of_text(None, training, [None] * len(self.offsets))
        return self._move(x, read, read_source, training)

    def _move(self, x, read, read_source, training=None):
        def attend_to_source(x, stage):
            projected = self.cross_projection(read_source(x))
            return self.cross_dropout(projected, training=training)

        increments = (
            self._attend(read, training),
            self._increment(self.cross_norm, attend_to_source),
            self._feed_forward(training),
        )
        return self._step(x, increments)

    def source_cache(self, encoded, source_mask):
        """What `step` needs that no target token changes: constants of the attention to
        earlier tokens, and the cache of an encoder output."""
        source = self.cross_attention.source_cache(encoded, encoded, source_mask)
        return self.attention.constants(), source

    def step(self, x, source_cache, cache, visible, position=None):
        """Runs the layer for the tokens of one position.

        Args:
          source_cache: of `source_cache`.

        See `TransformerEncoderLayer.step` for the others.
        """
        constants, source = source_cache

        def read_source(x):
            (attended,) = self.cross_attention.read_source(x, source)
            return attended

        read, cache = self._reads_of_step(constants, cache, visible, position)
        return self._move(x, read, read_source), cache


@keras.saving.register_keras_serializable("transevolve")
class TransformerDecoder(DecoderStack):
    """`num_layers` decoder layers in a row, and a closing LayerNorm."""

    layer_class, closing_norm = TransformerDecoderLayer, LayerNormalization
