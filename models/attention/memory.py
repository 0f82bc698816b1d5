"""Attention to what earlier texts have left: states of an operator, read as keys.

The state of a feature is what one key would leave that has this feature alone. So
states are as many keys that come before the text's own, and an operator reads them as
it reads any. What a text leaves in turn is the state of its last position, as decoding
keeps it. No gradient goes from a text to those before it.
"""

from typing import Any, NamedTuple

from keras import ops

from models.attention import reading
from models.attention.heads import LOWEST, merge_heads, split_heads


class Remembering(NamedTuple):
    """An operator that was made of a text and of what came before it.

    Attributes:
      state: `reading.State` of both.
      biases: b of all reads, (batch, heads, f + m, reads).
      values: of what came before, (batch, f, d), one a read.
      left: {read: what it leaves, a `cache.State` of one beam}.
    """

    state: reading.State
    biases: Any
    values: list
    left: dict


def start(operator, inputs, biases, mask, length, size, memory) -> Remembering:
    """As `reading.start`, after a memory.

    Args:
      memory: of each read, as `Carrying.empty_cache` gives for one beam.
    """
    memory = [ops.stop_gradient(state.value[:, 0]) for state in memory]
    earlier_biases, values = operator.keys_of(memory)
    batch, _, count, _ = ops.shape(earlier_biases)
    if mask is not None:
        is_there = ops.any(earlier_biases > LOWEST, axis=(1, 3))
        mask = ops.concatenate([is_there, mask], axis=1)
    earlier_biases = ops.cast(earlier_biases, biases.dtype)
    biases = ops.concatenate([earlier_biases, biases], axis=2)
    inputs = operator.after_features(inputs, count)
    state = reading.start(operator, inputs, biases, mask, length, size)
    values = [merge_heads(each) for each in values]
    return Remembering(state, biases, values, {})


def read(remembering: Remembering, number: int, values):
    """As `reading.read`; it also keeps what this read leaves."""
    state, earlier = remembering.state, remembering.values[number]
    values = ops.concatenate([ops.cast(earlier, values.dtype), values], axis=1)
    biases = remembering.biases[..., number, None]
    by_head = split_heads(values, state.operator.num_heads)
    biases, by_head = (ops.stop_gradient(x) for x in (biases, by_head))
    remembering.left[number] = state.operator.left_by(state.parts, biases, by_head)
    return reading.read(state, number, values)


def left(remembering: Remembering) -> list:
    """The memory for the text after this one, when all reads were taken."""
    return [remembering.left[number] for number in sorted(remembering.left)]
