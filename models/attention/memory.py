"""Attention to what earlier texts have left: states of an operator, or positions.

States (`Carrying`): the state of a feature is what one key would leave that has this
feature alone. So states are as many keys that come before the text's own, and an
operator reads them as it reads any. What a text leaves in turn is the state of its last
position, as decoding keeps it.

Positions (Dai et al. 2019): the last ones before a text are keys before its own.

No gradient goes from a text to those before it.
"""

from typing import Any, NamedTuple

from keras import ops

from models.attention import reading
from models.attention.heads import LOWEST, merge_heads, split_heads


class Positions(NamedTuple):
    """What an attention remembers of the last positions before a text.

    Attributes:
      x: its input there, (batch, span, d).
      real: bool (batch, span), false where there was none.
      values: of each read, (batch, span, d); none where they are projected from x.
    """

    x: Any
    real: Any
    values: list

    @classmethod
    def empty(cls, batch_size, span, width, reads, dtype):
        """Of a text that nothing comes before."""
        x = ops.zeros((batch_size, span, width), dtype)
        return cls(x, ops.zeros((batch_size, span), "bool"), [x] * reads)

    def before(self, x, mask):
        """Input and mask of the remembered positions and of a text together.

        Args:
          x: (batch, n, d).
          mask: bool (batch, n), true at real tokens; None if all are real.
        """
        if mask is None:
            mask = ops.ones(ops.shape(x)[:2], "bool")
        mask = ops.concatenate([self.real, ops.cast(mask, "bool")], axis=1)
        return _joined(self.x, x), mask

    def after(self, context, mask, values=()):
        """What is remembered of both for the text after; see `before`."""
        span = ops.shape(self.x)[1]
        # The last ones before the padding at the end, so that no distance has it in.
        count = ops.sum(ops.cast(mask[:, span:], "int32"), axis=1, keepdims=True)
        places = count + ops.arange(span)

        def last(x):
            return ops.stop_gradient(ops.take_along_axis(x, places[..., None], axis=1))

        real = ops.take_along_axis(mask, places, axis=1)
        return Positions(last(context), real, [last(each) for each in values])


class AfterPositions(NamedTuple):
    """An operator of a text and of positions before it.

    Attributes:
      made: of both, by an attention.
      context, mask: of both, from `Positions.before`.
      memory: the `Positions`.
      values: {read: those of both}.
    """

    made: Any
    context: Any
    mask: Any
    memory: Positions
    values: dict

    def read(self, number: int, values):
        """See `reading.Made.read`."""
        if self.memory.values:
            values = _joined(self.memory.values[number], values)
            self.values[number] = values
        return self.made.read(number, values)

    def left(self) -> Positions:
        """The memory for the text after this one, when all reads were taken."""
        values = [self.values[number] for number in sorted(self.values)]
        return self.memory.after(self.context, self.mask, values)


class AfterStates(NamedTuple):
    """An operator of a text and of the states that texts before it have left.

    Attributes:
      made: `reading.Made` of both.
      biases: b of all reads, (batch, heads, f + m, reads).
      values: of what came before, (batch, f, d), one a read.
      states: {read: what it leaves, a `cache.State` of one beam}.
    """

    made: reading.Made
    biases: Any
    values: list
    states: dict

    @classmethod
    def start(cls, operator, inputs, biases, mask, length, size, memory):
        """Starts by `reading.start`, after the states of each read."""
        memory = [ops.stop_gradient(state.value[:, 0]) for state in memory]
        earlier_biases, values = operator.keys_of(memory)
        count = ops.shape(earlier_biases)[2]
        if mask is not None:
            is_there = ops.any(earlier_biases > LOWEST, axis=(1, 3))
            mask = ops.concatenate([is_there, mask], axis=1)
        earlier_biases = ops.cast(earlier_biases, biases.dtype)
        biases = ops.concatenate([earlier_biases, biases], axis=2)
        inputs = operator.after_features(inputs, count)
        made = reading.start(operator, inputs, biases, mask, length, size)
        return cls(made, biases, [merge_heads(each) for each in values], {})

    def read(self, number: int, values):
        """See `reading.Made.read`."""
        operator, parts = self.made.operator, self.made.parts
        values = _joined(self.values[number], values)
        of_read = (
            self.biases[..., number, None],
            split_heads(values, operator.num_heads),
        )
        self.states[number] = operator.left_by(parts, *map(ops.stop_gradient, of_read))
        return self.made.read(number, values)

    def left(self) -> list:
        """The memory for the text after this one, when all reads were taken."""
        return [self.states[number] for number in sorted(self.states)]


def _joined(earlier, x):
    return ops.concatenate([ops.stop_gradient(ops.cast(earlier, x.dtype)), x], axis=1)
