"""Baseline: a pre-norm Transformer encoder of the same depth, width and heads."""

import keras
from keras import ops

from models.time_evolving_attention import split_heads
from models.transformer_layer import TransformerLayer, TransformerStack, visible_keys


@keras.saving.register_keras_serializable("transevolve")
class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then the feed-forward. See `TransformerLayer`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.attention_norm = self._norm("attention_norm")
        self.attention_dropout = self._dropout("attention_dropout")

    def build(self, input_shape):
        width = input_shape[-1]
        self.query_key_value = self._projection(
            "query_key_value", 3 * width, "attention"
        )
        self.output_projection = self._projection("output_projection", width)
        self._build(
            input_shape,
            self.attention_norm,
            self.query_key_value,
            self.output_projection,
            self.attention_dropout,
        )

    def call(self, x, padding_mask=None, training=None):
        """Runs the layer on (batch, length, width); mask true at real tokens."""
        projected = self.query_key_value(self.attention_norm(x))
        parts = ops.split(projected, 3, axis=-1)
        attended = self._attend(
            *(split_heads(part, self.num_heads) for part in parts),
            visible_keys(padding_mask),
        )
        attended = self.output_projection(attended)
        x += self.attention_dropout(attended, training=training)
        return self._transform(x, training)


@keras.saving.register_keras_serializable("transevolve")
class TransformerEncoder(TransformerStack):
    """Encoder layers in a row. See `TransformerStack` for the arguments."""

    layer_class = TransformerEncoderLayer

    def build(self, input_shape):
        self._build(input_shape)

    def call(self, x, padding_mask=None, training=None):
        """Encodes (batch, length, width); mask true at real tokens."""
        for layer in self.layers:
            x = layer(x, padding_mask, training=training)
        return self.output_norm(x)
