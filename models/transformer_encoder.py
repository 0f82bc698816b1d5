"""Baseline: a pre-norm Transformer encoder of the same depth, width and heads."""

import keras
from keras import ops
from keras.layers import Dense, Dropout, LayerNormalization

from models.feed_forward import FeedForward
from models.time_evolving_attention import (
    MASKED,
    merge_heads,
    scaled_scores,
    split_heads,
)


@keras.saving.register_keras_serializable("transevolve")
class TransformerLayer(keras.layers.Layer):
    """Self-attention and feed-forward, equations 1 to 3, pre-normalised.

    Query, key and value projections are one product; no projection has a bias, as
    in TransEvolve. Dropout is on each sublayer's output.

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
        self.attention_norm = LayerNormalization(name="attention_norm", **same)
        self.feed_forward_norm = LayerNormalization(name="ffn_norm", **same)
        self.attention_dropout = Dropout(dropout, seed=seed, **same)
        self.feed_forward_dropout = Dropout(dropout, seed=seed + 1, **same)

    def build(self, input_shape):
        width = input_shape[-1]
        if width % self.num_heads:
            raise ValueError(
                f"width {width} must be a multiple of num_heads={self.num_heads}"
            )
        same = {"dtype": self.dtype_policy}
        self.query_key_value = Dense(
            3 * width, use_bias=False, name="query_key_value", **same
        )
        self.output_projection = Dense(
            width, use_bias=False, name="output_projection", **same
        )
        self.feed_forward = FeedForward(
            Dense(self.ffn_dim, name="expand", **same),
            Dense(width, name="contract", **same),
            name="feed_forward",
            **same,
        )
        for layer in (
            self.attention_norm,
            self.query_key_value,
            self.output_projection,
            self.attention_dropout,
            self.feed_forward_norm,
            self.feed_forward,
            self.feed_forward_dropout,
        ):
            layer.build(input_shape)

    def call(self, x, padding_mask=None, training=None):
        """Runs the layer on (batch, length, width); mask true at real tokens."""
        attended = self.output_projection(
            self._attend(self.attention_norm(x), padding_mask)
        )
        x += self.attention_dropout(attended, training=training)
        transformed = self.feed_forward(self.feed_forward_norm(x))
        return x + self.feed_forward_dropout(transformed, training=training)

    def _attend(self, x, padding_mask):
        queries, keys, values = (
            split_heads(part, self.num_heads)
            for part in ops.split(self.query_key_value(x), 3, axis=-1)
        )
        scale = (x.shape[-1] / self.num_heads) ** -0.5
        scores = scaled_scores(queries * scale, keys, causal=False)
        if padding_mask is not None:
            visible = ops.cast(padding_mask, scores.dtype)[:, None, None, :]
            scores += MASKED * (1 - visible)
        return merge_heads(ops.matmul(ops.softmax(scores, axis=-1), values))

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable("transevolve")
class TransformerEncoder(keras.layers.Layer):
    """`num_layers` pre-norm Transformer layers and a closing LayerNorm.

    Args:
      num_layers: 6 in the paper.
      num_heads, ffn_dim, dropout: as in `TransformerLayer`.
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
            TransformerLayer(
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

    def build(self, input_shape):
        for layer in (*self.layers, self.output_norm):
            layer.build(input_shape)

    def call(self, x, padding_mask=None, training=None):
        """Encodes (batch, length, width); mask true at real tokens."""
        for layer in self.layers:
            x = layer(x, padding_mask, training=training)
        return self.output_norm(x)

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "seed": self.seed,
        }
