"""TransEvolve decoder: causal self-attention and cross-attention, both evolving."""

import keras

from models.attention.attention import StepReads
from models.layers.normalization import LayerNormalization
from models.stack import DecoderStack
from models.transevolve.block import TransEvolveBlock


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
class TransEvolveDecoderBlock(TransEvolveBlock):
    """One L-depth decoder block: equations 12 and 13, then the feed-forward.

    Both attentions are computed from the block's input, each with its own T^l. The
    values of cross-attention are the encoder's output, normalised; since attention
    weights sum to one, it is normalised once for all depths, and each depth's gain
    and bias act on what has been attended.

    See `TransEvolveBlock` for the arguments.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.self_attention = self._attention("self_attention", "causal")
        self.self_norms = self._per_depth(LayerNormalization, "self_attention_norm")
        self.self_dropouts = self._dropouts("self_attention_dropout")
        self.cross_attention = self._attention("cross_attention", "cross")
        self.source_norm = LayerNormalization(
            center=False, scale=False, dtype=self.dtype_policy, name="source_norm"
        )
        self.cross_norms = self._per_depth(GainAndBias, "cross_attention_norm")
        self.cross_dropouts = self._dropouts("cross_attention_dropout")

    def build(self, x_shape, encoded_shape=None):
        super().build(x_shape)
        width = x_shape[-1]
        self.self_projections = self._output_projections("self_projection", width)
        self.cross_projections = self._output_projections("cross_projection", width)
        for layers in (
            [self.self_attention, self.cross_attention, self.source_norm],
            self.self_norms,
            self.self_projections,
            self.self_dropouts,
            self.cross_norms,
            self.cross_projections,
            self.cross_dropouts,
        ):
            for layer in layers:
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
        made = self.self_attention(x, x, target_mask, training=training)
        cross_state = self.cross_attention(x, encoded, source_mask, training=training)
        source = self.source_norm(encoded)

        def attend(number, values):
            return self.self_attention.read(made, number, values)

        def attend_to_source(number):
            return self.cross_attention.read(cross_state, number, source)

        for depth in range(self.num_depths):
            x = self._depth(x, depth, attend, attend_to_source, training)
        return self.output_norm(x)

    def _depth(self, x, depth, attend, attend_to_source, training=None):
        """Moves (batch, target, width) by both attentions and the feed-forward.

        Args:
          attend: function of the number of a read and of its values.
          attend_to_source: function of the number of a read.
        """
        layers = self.self_norms, self.self_projections, self.self_dropouts
        from_target = self._attend(depth, attend, layers, training)

        def from_source(x, stage):
            attended = attend_to_source(self._number(depth, stage))
            projected = self.cross_projections[depth](self.cross_norms[depth](attended))
            return self.cross_dropouts[depth](projected, training=training)

        feed_forward = self._feed_forward(depth, training)
        return self._step(x, (from_target, from_source, feed_forward))

    def source_cache(self, encoded, source_mask):
        """What `step` needs that no target token changes: constants of the attention to
        earlier tokens, and the cache of an encoder output."""
        values = self.source_norm(encoded)
        source = self.cross_attention.source_cache(encoded, values, source_mask)
        return self.self_attention.constants(), source

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens: nothing yet."""
        return self.self_attention.empty_cache(batch_size, beams)

    def step(self, x, source_cache, cache, visible, position=None):
        """Runs the block for the tokens of one position.

        Args:
          x: (batch, beams, width).
          source_cache: of `source_cache`.
          cache: of earlier positions.
          visible, position: see `Attention`.

        Returns:
          (batch, beams, width), and the cache with this position.
        """
        constants, source = source_cache
        made = self.self_attention.step(x, constants, cache, visible, position)
        from_source = self.cross_attention.read_source(x, source)
        attend = StepReads(self.self_attention, made)
        for depth in range(self.num_depths):
            x = self._depth(x, depth, attend, from_source.__getitem__)
        return self.output_norm(x), attend.made.cache


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveDecoder(DecoderStack):
    """`num_blocks` decoder blocks in a row."""

    layer_class, unit = TransEvolveDecoderBlock, "block"
