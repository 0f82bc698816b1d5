"""An attention whose operator many depths, or layers, read."""

from keras import ops

from models.attention import reading
from models.attention.memory import AfterPositions, AfterStates, Positions
from models.attention.operator import STATES


class ManyReads:
    """What an `Attention` has whose reads are given their values.

    A subclass has `Attention.step` and a function of the arguments of `call`, memory
    apart, `inputs_and_biases`: what `Operator.make` takes; and b of all reads, (batch,
    heads, m, reads), `MASKED` at padding.
    """

    def call(self, x, context, padding_mask=None, training=None, memory=None):
        """Makes the operator of the block's input: `models.attention.reading.Made`, or
        one of those of `models.attention.memory`."""
        if isinstance(memory, Positions):
            context, mask = memory.before(context, padding_mask)
            made = self.call(x, context, mask, training)
            return AfterPositions(made, context, mask, memory, {})
        if padding_mask is not None:
            padding_mask = ops.cast(padding_mask, "bool")
        inputs, biases = self.inputs_and_biases(x, context, padding_mask, training)
        arguments = self.operator, inputs, biases, padding_mask, ops.shape(x)[1]
        if memory is not None:
            return AfterStates.start(*arguments, self.head_size, memory)
        return reading.start(*arguments, self.head_size)

    def read(self, made, number, values):
        """What a read gives, (batch, n, d), of its values."""
        values = ops.cast(values, self.compute_dtype)
        if isinstance(made, reading.Made):
            return reading.read(made, number, values)
        return made.read(number, values)

    def empty_cache(self, batch_size, beams):
        return self.operator.empty_cache(
            batch_size,
            beams,
            self.key_size,
            self.head_size,
            self.num_reads,
            self.compute_dtype,
        )

    def empty_memory(self, batch_size, span):
        if self.operator.memory == STATES:
            return self.empty_cache(batch_size, 1)
        width, reads = self.hidden_dim, self.num_reads
        return Positions.empty(batch_size, span, width, reads, self.compute_dtype)

    def read_step(self, made, number, values):
        return self.operator.read_step(made, number, values)


class StepReads:
    """The reads of one position by a causal attention, each after the one before.

    Attributes:
      made: of the attention after the latest read.
    """

    def __init__(self, attention, made):
        self.attention = attention
        self.made = made

    def __call__(self, number, values):
        attended, self.made = self.attention.read_step(self.made, number, values)
        return attended
