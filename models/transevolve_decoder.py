"""TransEvolve decoder: causal self-attention and cross-attention, both evolving."""

from typing import Any, NamedTuple

import keras
from keras import ops
from keras.layers import LayerNormalization

from models import decoding_cache as buffers
from models.gain_and_bias import GainAndBias
from models.time_evolving_attention import merge_heads, scaled_scores, split_heads
from models.transevolve_block import TransEvolveBlock, TransEvolveStack


class BlockMemory(NamedTuple):
    """What a decoder block's step needs, and no target token changes.

    Attributes:
      directions: of self-attention's b^l, (D, heads * depths).
      keys: K of the source, (batch, heads, source, D/H).
      biases: b^l of the source, (batch, heads, depths, source), masked at padding.
      values: the normalised encoder output, (batch, heads, source, d/H); all depths'.
    """

    directions: Any
    keys: Any
    biases: Any
    values: Any


class BlockCache(NamedTuple):
    """What a decoder block's self-attention keeps of earlier tokens.

    2 d + L (d + H) numbers a token, in `models.decoding_cache.Buffer`s.

    Attributes:
      keys: K, heads of size D/H.
      biases: b^l, a head each of size 1 for each head and depth.
      values: list, one per depth: normalised X^l, heads of size d/H.
    """

    keys: Any
    biases: Any
    values: list


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
        self.self_attention = self._attention("self_attention", causal=True)
        self.self_norms = self._per_depth(LayerNormalization, "self_attention_norm")
        self.self_dropouts = self._dropouts("self_attention_dropout")
        self.cross_attention = self._attention("cross_attention")
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
        of_self = self.self_attention(x, x, target_mask, training=training)
        of_source = self.cross_attention(x, encoded, source_mask, training=training)
        source = self.source_norm(encoded)
        for depth in range(self.num_depths):
            values = self.self_norms[depth](x)
            attended = self.self_attention.attend(of_self, depth, values)
            x = self._add_self(x, depth, attended, training)
            attended = self.cross_attention.attend(of_source, depth, source)
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
        """`BlockMemory` of an encoder output, for `step`."""
        keys, biases = self.cross_attention.keys_and_biases(
            encoded, self.cross_attention.directions(), source_mask
        )
        values = split_heads(self.source_norm(encoded), self.num_heads)
        return BlockMemory(self.self_attention.directions(), keys, biases, values)

    def empty_cache(self, batch_size, beams):
        """`BlockCache` without settled slots."""
        heads, depths = self.num_heads, self.num_depths
        size = self.self_attention.hidden_dim // heads

        def buffer(heads, size):
            return buffers.empty(batch_size, beams, heads, size, self.compute_dtype)

        return BlockCache(
            buffer(heads, 2 * size),
            buffer(heads * depths, 1),
            [buffer(heads, size) for _ in range(depths)],
        )

    def step(self, x, memory, cache, visible):
        """Runs the block for the tokens of one position.

        Args:
          x: (batch, beams, width).
          memory: `BlockMemory`.
          cache: `BlockCache` of earlier positions.
          visible: from `models.decoding_cache.visible_slots`.

        Returns:
          (batch, beams, width), and the cache with this position.
        """
        attention = self.self_attention
        keys, biases = attention.keys_and_biases(x, memory.directions)
        keys = buffers.append(cache.keys, keys)
        batch, heads, depths, beams = ops.shape(biases)
        biases = ops.reshape(biases, (batch, heads * depths, beams, 1))
        biases = buffers.append(cache.biases, biases)
        weights = attention.probabilities(
            buffers.scores(attention.scaled_queries(x), keys),
            ops.reshape(buffers.all_slots(biases), (batch, heads, depths, -1)),
            visible,
        )
        from_source = self._attend_to_source(x, memory)
        all_values = []
        for depth in range(self.num_depths):
            values = split_heads(self.self_norms[depth](x), self.num_heads)
            values = buffers.append(cache.values[depth], values)
            all_values.append(values)
            attended = merge_heads(buffers.weighted_sum(weights[:, :, depth], values))
            x = self._add_self(x, depth, attended)
            x = self._add_cross(x, depth, from_source[depth])
            x = self._transform(x, depth)
        return self.output_norm(x), BlockCache(keys, biases, all_values)

    def _attend_to_source(self, x, memory):
        """What cross-attention gives at each depth: (batch, beams, width) each."""
        queries = self.cross_attention.scaled_queries(x)
        scores = scaled_scores(queries, memory.keys, causal=False)
        weights = self.cross_attention.probabilities(scores, memory.biases)
        batch, heads, depths, beams, source = ops.shape(weights)
        weights = ops.reshape(weights, (batch, heads, depths * beams, source))
        attended = merge_heads(ops.matmul(weights, memory.values))
        return ops.split(attended, depths, axis=1)


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
        for block, of_source, of_target in zip(self.blocks, memory, cache, strict=True):
            x, of_target = block.step(x, of_source, of_target, visible)
            new_cache.append(of_target)
        return x, new_cache
