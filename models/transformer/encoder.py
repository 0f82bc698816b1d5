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

    Class attributes:
      attention_name, projection_name: by which weights name the attention and its
        output projection.

    Args:
      use: "self", or "causal" for tokens that see none after them.

    See `TransformerLayer` for the others.
    """

    attention_name, projection_name = "attention", "output_projection"

    def __init__(self, *, use="self", **kwargs):
        super().__init__(**kwargs)
        name = self.attention_name
        self.attention_norm = self._norm(f"{name}_norm")
        self.attention = self._attention(name, use)
        self.attention_dropout = self._dropout(f"{name}_dropout")

    def build(self, input_shape):
        width = input_shape[-1]
        self.output_projection = self._projection(self.projection_name, width)
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
        left = [None] * len(self.offsets) if memory is None else [*memory]
        x = self._move(x, self._reads_of_text(padding_mask, training, left), training)
        return x if memory is None else (x, left)

    def _reads_of_text(self, padding_mask, training, memory):
        """See `_reads`."""

        def make(x, earlier):
            return self.attention(x, x, padding_mask, training=training, memory=earlier)

        return self._reads(make, memory)

    def _reads(self, make, states):
        """What is attended, a function of the state of the layer and of the number of
        an offset.

        Args:
          make: function of that state and of what earlier texts or tokens have left.
          states: list of what they have left, one an offset. Each read brings its own
            up to date, unless it is None.
        """

        def read(x, stage):
            made = make(x, states[stage])
            attended = made.read(0, x)
            if states[stage] is not None:
                states[stage] = made.left()
            return attended

        return read

    def _move(self, x, read, training=None):
        """Moves (batch, length, width) by all sublayers."""
        increments = self._attend(read, training), self._feed_forward(training)
        return self._step(x, increments)

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
        read, cache = self._reads_of_step(constants, cache, visible, position)
        return self._move(x, read), cache

    def _reads_of_step(self, constants, cache, visible, position):
        """See `_reads`; and the list that has the cache with this position after it."""

        def make(x, past):
            return self.attention.step(x, constants, past, visible, position)

        cache = [*cache]
        return self._reads(make, cache), cache

    def increments(self, padding_mask, training):
        """Those of attention and of the feed-forward, for `models.reversible`."""
        over_text = self._reads_of_text(padding_mask, training, [None])
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
