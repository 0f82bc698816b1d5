"""What the layers and stacks of the Transformer's encoder and decoder share."""

import keras
from keras import ops
from keras.layers import LayerNormalization

from models.feed_forward import FeedForward
from models.seeds import derive_seed, seeded_dense, seeded_dropout
from models.time_evolving_attention import MASKED, merge_heads, scaled_scores


class TransformerLayer(keras.layers.Layer):
    """Attention and feed-forward, equations 1 to 3, pre-normalised.

    A subclass has the attentions. Projections of one input are one product; none has
    a bias, as in TransEvolve. Dropout is on each sublayer's output.

    Args:
      num_heads: H. Must divide the width.
      ffn_dim: inner size of the feed-forward.
      dropout: rate.
      seed: of initial weights and dropout.
    """

    def __init__(self, num_heads, ffn_dim, dropout=0.0, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.dropout = dropout
        self.seed = seed
        self.feed_forward_norm = self._norm("ffn_norm")
        self.feed_forward_dropout = self._dropout("ffn_dropout")

    def _norm(self, name):
        return LayerNormalization(dtype=self.dtype_policy, name=name)

    def _dropout(self, name):
        return seeded_dropout(self.dropout, name, self.seed, dtype=self.dtype_policy)

    def _projection(self, name, units, *path):
        seed = derive_seed(self.seed, *path)
        return seeded_dense(units, name, seed, use_bias=False, dtype=self.dtype_policy)

    def _build(self, shape, *layers):
        """Builds the feed-forward and a subclass's layers."""
        width = shape[-1]
        if width % self.num_heads:
            raise ValueError(
                f"width {width} must be a multiple of num_heads={self.num_heads}"
            )
        same = {"dtype": self.dtype_policy}
        seed = derive_seed(self.seed, "feed_forward")
        self.feed_forward = FeedForward(
            seeded_dense(self.ffn_dim, "expand", seed, **same),
            seeded_dense(width, "contract", seed, **same),
            name="feed_forward",
            **same,
        )
        own = (self.feed_forward_norm, self.feed_forward, self.feed_forward_dropout)
        for layer in (*layers, *own):
            layer.build(shape)

    def _attend(self, queries, keys, values, visible=None, causal=False):
        """Equation 1 by head; `visible` for scores (batch, heads, queries, keys)."""
        scores = scaled_scores(self._scaled(queries), keys, causal)
        return merge_heads(ops.matmul(self._weights(scores, visible), values))

    def _scaled(self, queries):
        return queries * queries.shape[-1] ** -0.5

    def _weights(self, scores, visible):
        if visible is not None:
            scores += MASKED * (1 - ops.cast(visible, scores.dtype))
        return ops.softmax(scores, axis=-1)

    def _transform(self, x, training=None):
        """Adds the feed-forward's output to (batch, length, width)."""
        transformed = self.feed_forward(self.feed_forward_norm(x))
        return x + self.feed_forward_dropout(transformed, training=training)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "seed": self.seed,
        }


class TransformerStack(keras.layers.Layer):
    """`num_layers` layers and a closing LayerNorm; a subclass names their class.

    Args:
      num_layers: 6 in the paper.
      num_heads, ffn_dim, dropout: as in `TransformerLayer`.
      seed: non-negative integer; each layer derives its own.
    """

    layer_class = None

    def __init__(self, num_layers, num_heads, ffn_dim, dropout=0.0, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.dropout = dropout
        self.seed = seed
        self.layers = [
            self.layer_class(
                num_heads,
                ffn_dim,
                dropout,
                seed=derive_seed(seed, f"layer_{index}"),
                dtype=self.dtype_policy,
                name=f"layer_{index}",
            )
            for index in range(num_layers)
        ]
        self.output_norm = LayerNormalization(
            dtype=self.dtype_policy, name="output_norm"
        )

    def _build(self, shape):
        for layer in (*self.layers, self.output_norm):
            layer.build(shape)

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "seed": self.seed,
        }


def visible_keys(mask):
    """A mask of keys (batch, keys) as `_attend` takes it; None stays None."""
    return None if mask is None else mask[:, None, None, :]
