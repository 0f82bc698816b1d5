"""What the layers of the Transformer's encoder and decoder share."""

import keras

from models.architecture import Attentions
from models.layers.dense import FeedForward, seeded_dense
from models.layers.normalization import LayerNormalization
from models.residual_step import EULER, RESIDUAL_STEPS
from models.seeds import derive_seed, seeded_dropout
from models.transformer.attention import ProjectedAttention
from models.transformer.no_attention import NoAttention

ATTENTIONS = Attentions(ProjectedAttention, layers={"none": NoAttention})


NORMS = ("pre", "post")


class TransformerLayer(keras.layers.Layer):
    """Attention and feed-forward, equations 1 to 3.

    A subclass has the attention, one of `attentions`, and its `attention_norm`. A
    sublayer f, with dropout on what it gives, moves the state to x + f(LN(x)), or,
    post-normalised, to LN(x + f(x)).

    Args:
      num_heads: H. Must divide the width.
      ffn_dim: inner size of the feed-forward.
      attention: name and hyperparameters, see `Attentions.make`.
      dropout: rate.
      norm: of `NORMS`, where the LayerNorm of a sublayer is; None for "pre".
      positions: of the model, see `Attention`.
      residual_step: of `models.residual_step.RESIDUAL_STEPS`; None for Euler's.
      kernel_scale: of all kernels at first, see `seeded_dense`.
      max_length: see `Attention`.
      seed: of initial weights and dropout.
    """

    attentions = ATTENTIONS

    def __init__(
        self,
        num_heads,
        ffn_dim,
        attention,
        dropout=0.0,
        norm=None,
        positions=None,
        residual_step=None,
        kernel_scale=1.0,
        max_length=None,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.attention_config = dict(attention)
        self.dropout = dropout
        self.norm = norm
        self.positions = positions
        self.offsets, self._step = RESIDUAL_STEPS[residual_step or EULER]
        self.kernel_scale = kernel_scale
        self.max_length = max_length
        self.seed = seed
        self.feed_forward_norm = self._norm("ffn_norm")
        self.feed_forward_dropout = self._dropout("ffn_dropout")

    def _attention(self, name, use, **further):
        return self.attentions.make(
            self.attention_config,
            num_heads=self.num_heads,
            use=use,
            positions=self.positions,
            dropout=self.dropout,
            kernel_scale=self.kernel_scale,
            max_length=self.max_length,
            seed=derive_seed(self.seed, name),
            dtype=self.dtype_policy.name,
            name=name,
            **further,
        )

    def _norm(self, name):
        return LayerNormalization(dtype=self.dtype_policy, name=name)

    def _dropout(self, name):
        return seeded_dropout(self.dropout, name, self.seed, dtype=self.dtype_policy)

    def _projection(self, name, units):
        options = {"use_bias": False, "dtype": self.dtype_policy}
        return seeded_dense(units, name, self.seed, self.kernel_scale, **options)

    def _build(self, shape, *layers):
        """Builds the feed-forward and a subclass's layers."""
        width = shape[-1]
        seed = derive_seed(self.seed, "feed_forward")
        dtype = {"dtype": self.dtype_policy}
        self.feed_forward = FeedForward(
            seeded_dense(self.ffn_dim, "expand", seed, self.kernel_scale, **dtype),
            seeded_dense(width, "contract", seed, self.kernel_scale, **dtype),
            name="feed_forward",
            **dtype,
        )
        for layer in (
            *layers,
            self.feed_forward_norm,
            self.feed_forward,
            self.feed_forward_dropout,
        ):
            layer.build(shape)

    def attention_input(self, x):
        """What the attention sees of the state, (batch, length, width) both."""
        return x if self.norm == "post" else self.attention_norm(x)

    def _increment(self, norm, sublayer):
        """The increment of a sublayer, which is a function of the state and of the
        number of an offset."""

        def increment(x, stage):
            if self.norm == "post":
                return norm(x + sublayer(x, stage)) - x
            return sublayer(norm(x), stage)

        return increment

    def _feed_forward(self, training=None):
        """The increment of the feed-forward, of (batch, length, width)."""

        def transform(x, stage):
            return self.feed_forward_dropout(self.feed_forward(x), training=training)

        return self._increment(self.feed_forward_norm, transform)
