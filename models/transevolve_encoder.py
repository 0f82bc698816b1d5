"""TransEvolve encoder: blocks of time-evolving attention and feed-forward."""

import keras
from keras.layers import Dense, Dropout, LayerNormalization

from models.factored_attention import FactoredAttention
from models.feed_forward import FeedForward
from models.literal_attention import LiteralAttention
from models.rotation_dense import RotationDense

ATTENTIONS = {"factored": FactoredAttention, "literal": LiteralAttention}
FEED_FORWARDS = ("dense", "rotation")


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveBlock(keras.layers.Layer):
    """One L-depth encoder block (figure 1a): attention operators once, L steps.

    Depth l, with T^l-evolved attention of the block's input (equation 9) and the
    feed-forward of equation 3 (dense) or 11 (rotation), each pre-normalised and
    residual; one LayerNorm closes the block.

    Args:
      num_depths: L.
      num_heads: H.
      ffn_dim: inner size of the feed-forward.
      feed_forward: "dense" (fullFF) or "rotation" (randomFF).
      form: "factored" or "literal", a key of `ATTENTIONS`.
      fidelity: "paper" or "official".
      dropout: rate on queries, keys and each sublayer's output.
      seed: non-negative integer; fixes dropout and the rotations.
    """

    def __init__(
        self,
        num_depths,
        num_heads,
        ffn_dim,
        feed_forward="dense",
        form="factored",
        fidelity="paper",
        dropout=0.0,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if feed_forward not in FEED_FORWARDS:
            raise ValueError(
                f"feed_forward must be one of {FEED_FORWARDS}, got {feed_forward!r}"
            )
        if form not in ATTENTIONS:
            raise ValueError(f"form must be one of {tuple(ATTENTIONS)}, got {form!r}")
        self.num_depths = num_depths
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.feed_forward = feed_forward
        self.form = form
        self.fidelity = fidelity
        self.dropout = dropout
        self.seed = seed
        self.attention = ATTENTIONS[form](
            num_heads,
            num_depths,
            dropout,
            fidelity=fidelity,
            seed=seed + 2 * num_depths,
            dtype=self.dtype_policy,
            name="attention",
        )
        same = {"dtype": self.dtype_policy}
        self.output_norm = LayerNormalization(name="output_norm", **same)
        self.attention_norms = self._per_depth(LayerNormalization, "attention_norm")
        self.feed_forward_norms = self._per_depth(LayerNormalization, "ffn_norm")
        self.dropouts = [
            Dropout(dropout, seed=seed + i, **same) for i in range(2 * num_depths)
        ]

    def _per_depth(self, make, name, *arguments, **options):
        return [
            make(*arguments, name=f"{name}_{depth}", dtype=self.dtype_policy, **options)
            for depth in range(self.num_depths)
        ]

    def build(self, input_shape):
        width = input_shape[-1]
        self.output_projections = self._per_depth(
            Dense, "output_projection", width, use_bias=False
        )
        self.feed_forwards = [
            FeedForward(
                self._dense(self.ffn_dim, depth, 0),
                self._dense(width, depth, 1),
                dtype=self.dtype_policy,
                name=f"feed_forward_{depth}",
            )
            for depth in range(self.num_depths)
        ]
        self.attention.build(input_shape)
        for layers in (
            self.attention_norms,
            self.output_projections,
            self.feed_forward_norms,
            self.feed_forwards,
            self.dropouts,
        ):
            for layer in layers:
                layer.build(input_shape)
        self.output_norm.build(input_shape)

    def _dense(self, units, depth, which):
        name = ("expand", "contract")[which]
        if self.feed_forward == "dense":
            return Dense(units, dtype=self.dtype_policy, name=name)
        return RotationDense(
            units,
            depth,
            self.num_depths,
            fidelity=self.fidelity,
            seed=(self.seed, which),
            dtype=self.dtype_policy,
            name=name,
        )

    def call(self, x, padding_mask=None, training=None):
        """Runs the block.

        Args:
          x: (batch, length, width).
          padding_mask: (batch, length), true at real tokens; None if all are real.

        Returns:
          (batch, length, width). Padded positions hold finite, meaningless values.
        """
        state = self.attention(x, x, padding_mask, training=training)
        for depth in range(self.num_depths):
            values = self.attention_norms[depth](x)
            attended = self.attention.attend(state, depth, values)
            attended = self.output_projections[depth](attended)
            x += self.dropouts[2 * depth](attended, training=training)
            transformed = self.feed_forwards[depth](self.feed_forward_norms[depth](x))
            x += self.dropouts[2 * depth + 1](transformed, training=training)
        return self.output_norm(x)

    def get_config(self):
        return {
            **super().get_config(),
            "num_depths": self.num_depths,
            "num_heads": self.num_heads,
            "ffn_dim": self.ffn_dim,
            "feed_forward": self.feed_forward,
            "form": self.form,
            "fidelity": self.fidelity,
            "dropout": self.dropout,
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveEncoder(keras.layers.Layer):
    """`num_blocks` TransEvolve blocks in a row (section 6).

    Args:
      num_blocks: 1 or 2 in the paper, with depths 6 and 3.
      num_depths: L, the depth of each block.
      num_heads, ffn_dim, feed_forward, form, fidelity, dropout: as in
        `TransEvolveBlock`.
      seed: non-negative integer; each block derives its own.
    """

    def __init__(
        self,
        num_blocks,
        num_depths,
        num_heads,
        ffn_dim,
        feed_forward="dense",
        form="factored",
        fidelity="paper",
        dropout=0.0,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_blocks = num_blocks
        self.seed = seed
        self.blocks = [
            TransEvolveBlock(
                num_depths,
                num_heads,
                ffn_dim,
                feed_forward=feed_forward,
                form=form,
                fidelity=fidelity,
                dropout=dropout,
                seed=1000 * seed + 100 * index,
                dtype=self.dtype_policy,
                name=f"block_{index}",
            )
            for index in range(num_blocks)
        ]

    def build(self, input_shape):
        for block in self.blocks:
            block.build(input_shape)

    def call(self, x, padding_mask=None, training=None):
        """Encodes (batch, length, width); see `TransEvolveBlock.call`."""
        for block in self.blocks:
            x = block(x, padding_mask, training=training)
        return x

    def get_config(self):
        block = self.blocks[0].get_config()
        del block["name"], block["trainable"], block["dtype"]
        return {
            **super().get_config(),
            **block,
            "num_blocks": self.num_blocks,
            "seed": self.seed,
        }
