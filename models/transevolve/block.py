"""What the blocks of TransEvolve's encoder and decoder share."""

import keras

from models.attention.attention import Attentions
from models.layers.dense import FeedForward, seeded_dense
from models.layers.normalization import LayerNormalization
from models.layers.rotation_dense import RotationDense
from models.residual_step import EULER, RESIDUAL_STEPS
from models.seeds import derive_seed, seeded_dropout
from models.transevolve.attention import TimeEvolvingAttention
from models.transevolve.literal import LiteralAttention
from models.transevolve.no_attention import NoAttention

ATTENTIONS = Attentions(
    TimeEvolvingAttention,
    softmax="factored",
    layers={"literal": LiteralAttention, "none": NoAttention},
)
FEED_FORWARDS = ("dense", "rotation")
EVOLUTIONS = ("none",)


class TransEvolveBlock(keras.layers.Layer):
    """An L-depth block: its attentions' operators once, then L steps.

    A subclass has the attentions. The last sublayer of a step is the feed-forward of
    equation 3 (dense) or 11 (rotation). Every sublayer is pre-normalised and gives an
    increment; `output_norm` closes the block.

    Args:
      num_depths: L.
      num_heads: H.
      ffn_dim: inner size of the feed-forward.
      attention: name and hyperparameters, see `Attentions.make`.
      feed_forward: "dense" (fullFF) or "rotation" (randomFF).
      fidelity: see `models.fidelity`.
      evolution: of `EVOLUTIONS`, where attention does not evolve as in the paper.
      dropout: rate on queries, keys and each sublayer's output.
      positions: of the model, see `Attention`.
      residual_step: of `models.residual_step.RESIDUAL_STEPS`; None for Euler's.
      max_length: see `Attention`.
      seed: non-negative integer; fixes initial weights, dropout and the rotations.
    """

    def __init__(
        self,
        num_depths,
        num_heads,
        ffn_dim,
        attention,
        feed_forward="dense",
        fidelity="paper",
        evolution=None,
        dropout=0.0,
        positions=None,
        residual_step=None,
        max_length=None,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if feed_forward not in FEED_FORWARDS:
            raise ValueError(
                f"feed_forward must be one of {FEED_FORWARDS}, got {feed_forward!r}"
            )
        self.num_depths = num_depths
        self.num_heads = num_heads
        self.ffn_dim = ffn_dim
        self.attention_config = dict(attention)
        self.feed_forward = feed_forward
        self.fidelity = fidelity
        self.evolution = evolution
        self.dropout = dropout
        self.positions = positions
        self.offsets, self._step = RESIDUAL_STEPS[residual_step or EULER]
        self.max_length = max_length
        self.seed = seed
        self.output_norm = LayerNormalization(
            dtype=self.dtype_policy, name="output_norm"
        )
        self.feed_forward_norms = self._per_depth(LayerNormalization, "ffn_norm")
        self.feed_forward_dropouts = self._dropouts("ffn_dropout")

    def _attention(self, name, use):
        return ATTENTIONS.make(
            self.attention_config,
            num_heads=self.num_heads,
            num_depths=self.num_depths,
            use=use,
            offsets=self.offsets,
            positions=self.positions,
            dropout=self.dropout,
            fidelity=self.fidelity,
            evolves=self.evolution is None,
            max_length=self.max_length,
            seed=derive_seed(self.seed, name),
            dtype=self.dtype_policy.name,
            name=name,
        )

    def _per_depth(self, make, name, **options):
        return [
            make(name=f"{name}_{depth}", dtype=self.dtype_policy.name, **options)
            for depth in range(self.num_depths)
        ]

    def _dropouts(self, name):
        return self._per_depth(seeded_dropout, name, rate=self.dropout, seed=self.seed)

    def _output_projections(self, name, width):
        return self._per_depth(
            seeded_dense, name, units=width, use_bias=False, seed=self.seed
        )

    def build(self, input_shape):
        width = input_shape[-1]
        self.feed_forwards = [
            FeedForward(
                self._dense("expand", self.ffn_dim, depth),
                self._dense("contract", width, depth),
                dtype=self.dtype_policy,
                name=f"feed_forward_{depth}",
            )
            for depth in range(self.num_depths)
        ]
        for layers in (
            self.feed_forward_norms,
            self.feed_forwards,
            self.feed_forward_dropouts,
            [self.output_norm],
        ):
            for layer in layers:
                layer.build(input_shape)

    def _dense(self, name, units, depth):
        seed = derive_seed(self.seed, f"feed_forward_{depth}")
        if self.feed_forward == "dense":
            return seeded_dense(units, name, seed, dtype=self.dtype_policy)
        return RotationDense(
            units,
            depth,
            self.num_depths,
            fidelity=self.fidelity,
            seed=derive_seed(seed, name),
            dtype=self.dtype_policy.name,
            name=name,
        )

    def _number(self, depth, stage):
        """Of the read of an attention's operator."""
        return depth * len(self.offsets) + stage

    def _attend(self, depth, read, layers, training=None):
        """The increment of an attention, of (batch, length, width).

        Args:
          read: function of the number of a read and of its values.
          layers: what comes before it and after it, of all depths: normalisations,
            projections and dropouts.
        """
        norm, project, drop = (of_depths[depth] for of_depths in layers)

        def increment(x, stage):
            attended = read(self._number(depth, stage), norm(x))
            return drop(project(attended), training=training)

        return increment

    def _feed_forward(self, depth, training=None):
        """The increment of the feed-forward, of (batch, length, width)."""

        def increment(x, stage):
            transformed = self.feed_forwards[depth](self.feed_forward_norms[depth](x))
            return self.feed_forward_dropouts[depth](transformed, training=training)

        return increment
