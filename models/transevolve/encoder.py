"""TransEvolve encoder: blocks of time-evolving attention and feed-forward."""

import keras

from models.attention.attention import StepReads
from models.layers.normalization import LayerNormalization
from models.stack import EncoderStack
from models.transevolve.block import TransEvolveBlock


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveEncoderBlock(TransEvolveBlock):
    """One L-depth encoder block (figure 1a): T^l-evolved attention of the block's
    input (equation 9), then the feed-forward, at each depth.

    Args:
      use: "self", or "causal" for tokens that see none after them.

    See `TransEvolveBlock` for the others.
    """

    def __init__(self, *, use="self", **kwargs):
        super().__init__(**kwargs)
        self.attention = self._attention("attention", use)
        self.attention_norms = self._per_depth(LayerNormalization, "attention_norm")
        self.attention_dropouts = self._dropouts("attention_dropout")

    def build(self, input_shape):
        super().build(input_shape)
        self.output_projections = self._output_projections(
            "output_projection", input_shape[-1]
        )
        for layers in (
            [self.attention],
            self.attention_norms,
            self.output_projections,
            self.attention_dropouts,
        ):
            for layer in layers:
                layer.build(input_shape)

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
        carried = {} if memory is None else {"memory": memory}
        made = self.attention(x, x, padding_mask, training=training, **carried)

        def read(number, values):
            return self.attention.read(made, number, values)

        x = self._depths(x, read, training)
        return x if memory is None else (x, made.left())

    def _depths(self, x, read, training=None):
        """Moves (batch, length, width) through all depths; `read` is that of `move`."""
        for depth in range(self.num_depths):
            x = self.move(depth, x, read, training)
        return self.output_norm(x)

    def move(self, depth, x, read, training=None):
        """Gives X^(l+1) of X^l, (batch, length, width) both.

        Args:
          depth: l, from 0.
          read: function of the number of a read and of its values.
        """
        layers = self.attention_norms, self.output_projections, self.attention_dropouts
        attend = self._attend(depth, read, layers, training)
        return self._step(x, (attend, self._feed_forward(depth, training)))

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
        read = StepReads(self.attention, made)
        return self._depths(x, read), read.made.cache


@keras.saving.register_keras_serializable("transevolve")
class TransEvolveEncoder(EncoderStack):
    """`num_blocks` encoder blocks in a row, 1 or 2 in the paper (section 6)."""

    layer_class, unit = TransEvolveEncoderBlock, "block"
