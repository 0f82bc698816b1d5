"""TransEvolve encoder: blocks of time-evolving attention and feed-forward."""

import keras

from models.architecture import Attentions
from models.layers.dense import FeedForward, seeded_dense
from models.layers.normalization import LayerNormalization
from models.layers.rotation_dense import RotationDense
from models.residual_step import EULER, RESIDUAL_STEPS
from models.seeds import derive_seed, seeded_dropout
from models.stack import EncoderStack
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


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveEncoderBlock(keras.layers.Layer):
    """One L-depth block (figure 1a): the operator of its attention once, of its input,
    then L steps.

    A step is T^l-evolved attention (equation 9), then the feed-forward of equation 3
    (dense) or 11 (rotation). Every sublayer is pre-normalised and gives an increment;
    `output_norm` closes the block.

    Class attributes:
      attention_name, projection_name: by which weights name the attention and its
        output projections.

    Args:
      num_depths: L.
      num_heads: H.
      ffn_dim: inner size of the feed-forward.
      attention: name and hyperparameters, see `Attentions.make`.
      use: "self", or "causal" for tokens that see none after them.
      feed_forward: "dense" (fullFF) or "rotation" (randomFF).
      fidelity: see `models.fidelity`.
      evolution: of `EVOLUTIONS`, where attention does not evolve as in the paper.
      dropout: rate on queries, keys and each sublayer's output.
      positions: of the model, see `Attention`.
      residual_step: of `models.residual_step.RESIDUAL_STEPS`; None for Euler's.
      max_length: see `Attention`.
      seed: non-negative integer; fixes initial weights, dropout and the rotations.
    """

    attention_name, projection_name = "attention", "output_projection"

    def __init__(
        self,
        num_depths,
        num_heads,
        ffn_dim,
        attention,
        use="self",
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
        name = self.attention_name
        self.attention = self._attention(name, use)
        self.attention_norms = self._per_depth(LayerNormalization, f"{name}_norm")
        self.attention_dropouts = self._dropouts(f"{name}_dropout")

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
        self.output_projections = self._output_projections(self.projection_name, width)
        for layer in (
            self.attention,
            self.output_norm,
            *self.attention_norms,
            *self.output_projections,
            *self.attention_dropouts,
            *self.feed_forward_norms,
            *self.feed_forwards,
            *self.feed_forward_dropouts,
        ):
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

    def call(self, x, padding_mask=None, training=None, memory=None):
        """Runs the block.

        Args:
          x: (batch, length, width).
          padding_mask: (batch, length), true at real tokens; None if all are real.
          memory: of a causal block, what the text before has left, as from
            `empty_memory`.

        Returns:
          (batch, length, width). Padded positions hold finite, meaningless values.
          Where there is a memory, that for the text after this one, too.
        """
        made = self.attention(x, x, padding_mask, training=training, memory=memory)
        for depth in range(self.num_depths):
            x = self.move(depth, x, made.read, training)
        x = self.output_norm(x)
        return x if memory is None else (x, made.left())

    def move(self, depth, x, read, training=None):
        """Gives X^(l+1) of X^l, (batch, length, width) both.

        Args:
          depth: l, from 0.
          read: function of the number of a read and of its values.
        """
        increments = (
            self._attend(depth, read, training),
            self._feed_forward(depth, training),
        )
        return self._step(x, increments)

    def _attend(self, depth, read, training=None):
        """The increment of attention, of (batch, length, width)."""

        def increment(x, stage):
            values = self.attention_norms[depth](x)
            attended = read(self._number(depth, stage), values)
            projected = self.output_projections[depth](attended)
            return self.attention_dropouts[depth](projected, training=training)

        return increment

    def _feed_forward(self, depth, training=None):
        """The increment of the feed-forward, likewise."""

        def increment(x, stage):
            transformed = self.feed_forwards[depth](self.feed_forward_norms[depth](x))
            return self.feed_forward_dropouts[depth](transformed, training=training)

        return increment

    def _number(self, depth, stage):
        """Of the read of an attention's operator."""
        return depth * len(self.offsets) + stage

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens: nothing yet."""
        return self.attention.empty_cache(batch_size, beams)

    def empty_memory(self, batch_size, span):
        """What `call` keeps of earlier texts, of so many positions: nothing yet."""
        return self.attention.empty_memory(batch_size, span)

    def step(self, x, constants, cache, visible, position=None):
        """Runs a causal block for the tokens of one position.

        Args:
          x: (batch, beams, width).
          constants: of its attention.
          cache: of earlier positions.
          visible, position: see `Attention`.

        Returns:
          (batch, beams, width), and the cache with this position.
        """
        made = self.attention.step(x, constants, cache, visible, position)
        for depth in range(self.num_depths):
            x = self.move(depth, x, made.read)
        return self.output_norm(x), made.left()


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveEncoder(EncoderStack):
    """`num_blocks` encoder blocks in a row, 1 or 2 in the paper (section 6)."""

    layer_class, unit = TransEvolveEncoderBlock, "block"
