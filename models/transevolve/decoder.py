"""TransEvolve decoder: causal self-attention and cross-attention, both evolving."""

import keras

from models.layers.normalization import LayerNormalization
from models.stack import DecoderStack
from models.transevolve.encoder import TransEvolveEncoderBlock


@keras.saving.register_keras_serializable("transevolve")
class GainAndBias(keras.layers.Layer):
    """x * gamma + beta, (..., width): a LayerNorm of what is already normalised."""

    def build(self, input_shape):
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros")

    def call(self, x):
        return x * self.gamma + self.beta


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveDecoderBlock(TransEvolveEncoderBlock):
    """One L-depth decoder block: equations 12 and 13, then the feed-forward.

    It is a causal encoder block with attention to a source after that to the target.
    Both attentions are computed from the block's input, each with its own T^l. The
    values of cross-attention are the encoder's output, normalised; since attention
    weights sum to one, it is normalised once for all depths, and each depth's gain
    and bias act on what has been attended.

    See `TransEvolveEncoderBlock` for the arguments.
    """

    attention_name, projection_name = "self_attention", "self_projection"

    def __init__(self, *, use="causal", **kwargs):
        super().__init__(use=use, **kwargs)
        self.cross_attention = self._attention("cross_attention", "cross")
        self.source_norm = LayerNormalization(
            center=False, scale=False, dtype=self.dtype_policy, name="source_norm"
        )
        self.cross_norms = self._per_depth(GainAndBias, "cross_attention_norm")
        self.cross_dropouts = self._dropouts("cross_attention_dropout")

    def build(self, x_shape, encoded_shape=None):
        super().build(x_shape)
        self.cross_projections = self._output_projections(
            "cross_projection", x_shape[-1]
        )
        for layer in (
            self.cross_attention,
            self.source_norm,
            *self.cross_norms,
            *self.cross_projections,
            *self.cross_dropouts,
        ):
            layer.build(x_shape)

    def call(self, x, encoded, target_mask=None, source_mask=None, training=None):
        """Runs the block.

        Args:
          x: (batch, target, width).
          encoded: (batch, source, width), output of the encoder.
          target_mask: (batch, target), true at real tokens; None if all are real.
          source_mask: (batch, source), likewise.

        Returns:
          (batch, target, width). Padded positions hold finite, meaningless values.
        """
        made = self.attention(x, x, target_mask, training=training)
        of_source = self.cross_attention(x, encoded, source_mask, training=training)
        source = self.source_norm(encoded)

        def read_source(number):
            return of_source.read(number, source)

        for depth in range(self.num_depths):
            x = self.move(depth, x, made.read, read_source, training)
        return self.output_norm(x)

    def move(self, depth, x, read, read_source, training=None):
        """See `TransEvolveEncoderBlock.move`; `read_source` takes a read's number."""

        def attend_to_source(x, stage):
            attended = read_source(self._number(depth, stage))
            projected = self.cross_projections[depth](self.cross_norms[depth](attended))
            return self.cross_dropouts[depth](projected, training=training)

        increments = (
            self._attend(depth, read, training),
            attend_to_source,
            self._feed_forward(depth, training),
        )
        return self._step(x, increments)

    def source_cache(self, encoded, source_mask):
        """What `step` needs that no target token changes: constants of the attention to
        earlier tokens, and the cache of an encoder output."""
        values = self.source_norm(encoded)
        source = self.cross_attention.source_cache(encoded, values, source_mask)
        return self.attention.constants(), source

    def step(self, x, source_cache, cache, visible, position=None):
        """Runs the block for the tokens of one position.

        Args:
          source_cache: of `source_cache`.

        See `TransEvolveEncoderBlock.step` for the others.
        """
        constants, source = source_cache
        made = self.attention.step(x, constants, cache, visible, position)
        of_source = self.cross_attention.read_source(x, source)
        for depth in range(self.num_depths):
            x = self.move(depth, x, made.read, of_source.__getitem__)
        return self.output_norm(x), made.left()


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveDecoder(DecoderStack):
    """`num_blocks` decoder blocks in a row."""

    layer_class, unit = TransEvolveDecoderBlock, "block"
