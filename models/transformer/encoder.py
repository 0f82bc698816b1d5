"""Baseline: a Transformer encoder of the same depth, width and heads."""

import keras

from models import reversible
from models.layers.normalization import LayerNormalization
from models.reversible import Increment
from models.stack import EncoderStack
from models.transformer.layer import TransformerLayer


@keras.saving.register_keras_serializable("transevolve")
class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then the feed-forward.

    Args:
      use: "self", or "causal" for tokens that see none after them.

    See `TransformerLayer` for the others.
    """

    def __init__(self, *, use="self", **kwargs):
        super().__init__(**kwargs)
        self.attention_norm = self._norm("attention_norm")
        self.attention = self._attention("attention", use)
        self.attention_dropout = self._dropout("attention_dropout")

    def build(self, input_shape):
        self.output_projection = self._projection("output_projection", input_shape[-1])
        self._build(
            input_shape,
            self.attention_norm,
            self.attention,
            self.output_projection,
            self.attention_dropout,
        )

    def call(self, x, padding_mask=None, training=None, memory=None):
        """Runs the layer on (batch, length, width); mask true at real tokens.

        Args:
          memory: of a causal layer, what the text before has left, as from
            `empty_memory`.

        Returns:
          (batch, length, width). Where there is a memory, that for the text after this
          one, too.
        """
        left = [None] * len(self.offsets) if memory is None else list(memory)
        attend = self._attend(self._over_text(padding_mask, training, left), training)
        x = self._step(x, (attend, self._feed_forward(training)))
        return x if memory is None else (x, left)

    def _over_text(self, padding_mask, training, memory):
        """What is attended in a text, of the state and of the number of an offset, by a
        function that also brings the list `memory` up to date."""

        def read(x, stage):
            earlier = memory[stage]
            carried = {} if earlier is None else {"memory": earlier}
            made = self.attention(x, x, padding_mask, training=training, **carried)
            if carried:
                memory[stage] = made.cache
            return self.attention.read(made, 0, x)

        return read

    def _attend(self, read, training=None):
        """The increment of attention, by what is attended."""

        def attend(x, stage):
            attended = self.output_projection(read(x, stage))
            return self.attention_dropout(attended, training=training)

        return self._increment(self.attention_norm, attend)

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens, for each offset: nothing yet."""
        empty = self.attention.empty_cache
        return [empty(batch_size, beams) for _ in self.offsets]

    def empty_memory(self, batch_size, span):
        """What `call` keeps of earlier texts, for each offset: nothing yet."""
        empty = self.attention.empty_memory
        return [empty(batch_size, span) for _ in self.offsets]

    def step(self, x, constants, cache, visible, position=None):
        """Runs a causal layer for the tokens of one position.

        Args:
          x: (batch, beams, width).
          constants: of its attention.
          cache: of earlier positions.
          visible, position: see `Attention`.

        Returns:
          (batch, beams, width), and the cache with this position.
        """
        cache = list(cache)
        read = self._over_cache(self.attention, constants, cache, visible, position)
        return self._step(x, (self._attend(read), self._feed_forward())), cache

    def increments(self, padding_mask, training):
        """Those of attention and of the feed-forward, for `models.reversible`."""
        over_text = self._over_text(padding_mask, training, [None])
        attend = self._attend(over_text, training)
        transform = self._feed_forward(training)
        return (
            Increment(
                lambda x: attend(x, 0),
                (
                    self.attention_norm,
                    self.attention,
                    self.output_projection,
                    self.attention_dropout,
                ),
            ),
            Increment(
                lambda x: transform(x, 0),
                (self.feed_forward_norm, self.feed_forward, self.feed_forward_dropout),
            ),
        )


@keras.saving.register_keras_serializable("transevolve")
class TransformerEncoder(EncoderStack):
    """`num_layers` encoder layers in a row, 6 in the paper, and a closing LayerNorm."""

    layer_class, closing_norm = TransformerEncoderLayer, LayerNormalization

    def call(self, x, padding_mask=None, training=None, memory=None):
        if self.residuals is None or memory is not None:
            return super().call(x, padding_mask, training, memory)

        def increments(mask=None):
            each = (layer.increments(mask, training) for layer in self.layers)
            return [increment for layer in each for increment in layer]

        return self.output_norm(reversible.take(x, padding_mask, increments))
