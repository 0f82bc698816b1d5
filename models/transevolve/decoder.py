"""TransEvolve decoder: causal self-attention and cross-attention, both evolving."""

import keras

from models.attention.mechanism import Memory
from models.normalization import LayerNormalization
from models.transevolve.block import TransEvolveBlock, TransEvolveStack
from models.transevolve.gain_and_bias import GainAndBias


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveDecoderBlock(TransEvolveBlock):
    """One L-depth decoder block: equations 12 and 13, then the feed-forward.

    Both attentions are computed from the block's input, each with its own T^l. The
    values of cross-attention are the encoder's output, normalised; since attention
    weights sum to one, it is normalised once for all depths, and each depth's gain
    and bias act on what has been attended.

    See `TransEvolveBlock` for the arguments.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
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
        self_state = self.self_attention(x, x, target_mask, training=training)
        cross_state = self.cross_attention(x, encoded, source_mask, training=training)
        source = self.source_norm(encoded)
        for depth in range(self.num_depths):
            values = self.self_norms[depth](x)
            attended = self.self_attention.attend(self_state, depth, values)
            x = self._add_self(x, depth, attended, training)
            attended = self.cross_attention.attend(cross_state, depth, source)
            x = self._add_cross(x, depth, attended, training)
            x = self._transform(x, depth, training)
        return self.output_norm(x)

    def _add_self(self, x, depth, attended, training=None):
        projected = self.self_projections[depth](attended)
        return x + self.self_dropouts[depth](projected, training=training)

    def _add_cross(self, x, depth, attended, training=None):
        projected = self.cross_projections[depth](self.cross_norms[depth](attended))
        return x + self.cross_dropouts[depth](projected, training=training)

    def memory(self, encoded, source_mask):
        """`Memory` of an encoder output, for `step`."""
        values = self.source_norm(encoded)
        source = self.cross_attention.memory(encoded, values, source_mask)
        return Memory(self.self_attention.constants(), source)

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens: nothing yet."""
        return self.self_attention.empty_cache(batch_size, beams)

    def step(self, x, memory, cache, visible):
        """Runs the block for the tokens of one position.

        Args:
          x: (batch, beams, width).
          memory: `Memory`.
          cache: of earlier positions.
          visible: see `models.attention.cache.SlotMap`.

        Returns:
          (batch, beams, width), and the cache with this position.
        """
        attention = self.self_attention
        state = attention.step(x, memory.constants, cache, visible)
        from_source = self.cross_attention.attend_to_memory(x, memory.source)
        for depth in range(self.num_depths):
            values = self.self_norms[depth](x)
            attended, state = attention.attend_step(state, depth, values)
            x = self._add_self(x, depth, attended)
            x = self._add_cross(x, depth, from_source[depth])
            x = self._transform(x, depth)
        return self.output_norm(x), state.cache


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveDecoder(TransEvolveStack):
    """Decoder blocks in a row. See `TransEvolveStack` for the arguments."""

    block_class = TransEvolveDecoderBlock

    def build(self, x_shape, encoded_shape=None):
        super().build(x_shape)

    def call(self, x, encoded, target_mask=None, source_mask=None, training=None):
        """Decodes (batch, target, width); see `TransEvolveDecoderBlock.call`."""
        for block in self.blocks:
            x = block(x, encoded, target_mask, source_mask, training=training)
        return x

    def memory(self, encoded, source_mask):
        """What `step` needs of the source, block by block."""
        return [block.memory(encoded, source_mask) for block in self.blocks]

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens, block by block: none yet."""
        return [block.empty_cache(batch_size, beams) for block in self.blocks]

    def step(self, x, memory, cache, visible):
        """Decodes one position; see `TransEvolveDecoderBlock.step`."""
        new_cache = []
        for block, source, past in zip(self.blocks, memory, cache, strict=True):
            x, past = block.step(x, source, past, visible)
            new_cache.append(past)
        return x, new_cache
