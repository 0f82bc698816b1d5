"""A Transformer's encoder whose layers share one attention."""

import keras
from keras import ops

from models.attention.attention import Attention
from models.layers.normalization import LayerNormalization
from models.stack import EncoderStack
from models.transformer.attention import ProjectedAttention
from models.transformer.layer import ATTENTIONS, TransformerLayer


@keras.saving.register_keras_serializable("transevolve")
class SharedAttention(ProjectedAttention):
    """An operator of one layer's queries and keys, which all layers read.

    See `ProjectedAttention` for the arguments.
    """

    num_biased_reads = Attention.num_biased_reads

    @property
    def projections(self):
        """Without values: layers have their own."""
        return self.operator.projections

    def biases(self, keys, context, constants):
        """Zeros: all layers read with the weights of the first."""
        batch, length, _ = ops.shape(context)
        return ops.zeros((batch, self.num_heads, length, self.num_reads), "float32")


@keras.saving.register_keras_serializable("transevolve")
class SharedAttentionLayer(TransformerLayer):
    """Values that read a shared operator, then the feed-forward.

    Args:
      use: of the operator, "self" or "causal".
      readers: how many layers read the operator of this one's `attention`; None for a
        layer that has none.

    See `TransformerLayer` for the others.
    """

    attentions = ATTENTIONS._replace(layer=SharedAttention, layers={})

    def __init__(self, *, use="self", readers=None, **kwargs):
        super().__init__(**kwargs)
        self.attention = None
        if readers:
            several = {"num_depths": readers, "offsets": self.offsets}
            self.attention = self._attention("attention", use, **several)
        self.attention_norm = self._norm("attention_norm")
        self.attention_dropout = self._dropout("attention_dropout")

    def build(self, input_shape):
        width = input_shape[-1]
        self.value_projection = self._projection("value_projection", width)
        self.output_projection = self._projection("output_projection", width)
        self._build(
            input_shape,
            self.attention_norm,
            *([self.attention] if self.attention else []),
            self.value_projection,
            self.output_projection,
            self.attention_dropout,
        )

    def move(self, depth, x, read, training=None):
        """Gives the next state of a state, (batch, length, width) both.

        Args:
          depth: of this layer, from 0.
          read: function of the number of a read and of its values.
        """

        def attend(x, stage):
            number = depth * len(self.offsets) + stage
            attended = self.output_projection(read(number, self.value_projection(x)))
            return self.attention_dropout(attended, training=training)

        attend = self._increment(self.attention_norm, attend)
        return self._step(x, (attend, self._feed_forward(training)))


@keras.saving.register_keras_serializable("transevolve")
class SharedAttentionEncoder(EncoderStack):
    """`num_layers` layers and a closing LayerNorm, with the attention weights of the
    first layer in all (Xiao et al. 2019; Ying et al. 2021).

    The first layer makes the operator of its queries and keys. Each layer reads it with
    values of its own.
    """

    layer_class, closing_norm = SharedAttentionLayer, LayerNormalization

    def _of(self, number, count):
        readers = count if number == 1 else None
        return {**super()._of(number, count), "readers": readers}

    @property
    def attention(self):
        return self.layers[0].attention

    def call(self, x, padding_mask=None, training=None, memory=None):
        """See `EncoderStack.call`."""
        seen = self.layers[0].attention_input(x)
        made = self.attention(
            seen, seen, padding_mask, training=training, memory=memory
        )
        x = self._through(x, made.read, training)
        return x if memory is None else (x, made.left())

    def _through(self, x, read, training=None):
        """Moves (batch, length, width) through all layers; `read` is that of `move`."""
        for depth, layer in enumerate(self.layers):
            x = layer.move(depth, x, read, training)
        return self.output_norm(x)

    def empty_cache(self, batch_size, beams):
        """See `Stack.empty_cache`."""
        return self.attention.empty_cache(batch_size, beams)

    def empty_memory(self, batch_size, span):
        """See `EncoderStack.empty_memory`."""
        return self.attention.empty_memory(batch_size, span)

    def constants(self):
        """See `EncoderStack.constants`."""
        return self.attention.constants()

    def step(self, x, given, cache, visible, position=None):
        """See `Stack.step`."""
        seen = self.layers[0].attention_input(x)
        made = self.attention.step(seen, given, cache, visible, position)
        return self._through(x, made.read), made.left()
