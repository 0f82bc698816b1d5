"""What an operator has besides, to decode: one position after the other."""

import abc
from typing import Any, NamedTuple

from keras import ops

from models.attention.cache import State
from models.attention.heads import identity, merge_heads
from models.attention.operator import STATES


class Step(NamedTuple):
    """What the reads of one position share.

    Attributes:
      operator: a `Decoding`.
      shared: what its `step` has made of the position.
      cache: with the position, up to the latest read.
    """

    operator: Any
    shared: Any
    cache: Any

    def read(self, number, values):
        """What a read gives, (batch, beams, d), of values likewise."""
        return self.operator.read_step(self, number, values)

    def left(self):
        """The cache for the next position, when all reads were taken."""
        return self.cache


class Decoding(abc.ABC):
    """What an `Operator` has besides, to decode one position at a time.

    Sizes are (batch, heads, beams, size), for all beams of a sentence. Queries and keys
    are prepared.
    """

    can_decode = True

    @abc.abstractmethod
    def empty_cache(self, batch_size, beams, key_size, size, num_reads, dtype):
        """What `step` keeps of earlier tokens, none yet: any nesting of tuples and
        lists of the leaves of `models.attention.cache`."""

    def inputs_of_step(self, queries, keys, x, position) -> tuple:
        """Gives `Operator.inputs` of one position.

        Args:
          x: of the layer, (batch, beams, d).
          position: a scalar.
        """
        return self.inputs(queries, keys, self.further_inputs(x, x))

    @abc.abstractmethod
    def step(self, inputs, biases, cache, visible) -> Step:
        """What the reads of one position share.

        Args:
          inputs: of `inputs_of_step`.
          biases: (batch, heads, beams, reads).
          visible: from `models.attention.cache.SlotMap`; None where no cache has slots.
        """

    @abc.abstractmethod
    def read_step(self, made, number, values):
        """What a read gives, (batch, beams, d), of values likewise. Its state after the
        position goes into a list of `made.cache`, which is the step's own."""


class RecurrentDecoding(Decoding):
    """Decoding by a `State` of each read, in float32, which each position advances.

    The cache is a list of them.
    """

    def read_step(self, made, number, values):
        """See `Decoding.read_step`."""
        batch, beams, width = ops.shape(values)
        shape = (batch, beams, self.num_heads, width // self.num_heads)
        new = ops.reshape(ops.cast(values, "float32"), shape)
        past = made.cache[number].value
        attended, past = self.advance(made.shared, number, past, new)
        attended = ops.reshape(attended, (batch, beams, width))
        made.cache[number] = State(past)
        return ops.cast(attended, values.dtype)

    @abc.abstractmethod
    def advance(self, shared, number, past, values):
        """What a read gives, as the values are; and its state after the position.

        Args:
          shared: of `Step`.
          past: the read's state before the position.
          values: float32 (batch, beams, heads, size).
        """


class Carrying(RecurrentDecoding):
    """What an `Operator` of queries and keys as features has besides, whose states in
    decoding may come from a text before: see `models.attention.memory`."""

    memory = STATES

    @abc.abstractmethod
    def keys_of(self, memory) -> tuple:
        """The keys that stand for states: one a feature, which has that feature alone.

        Args:
          memory: the states of each read, (batch, heads, f, …).

        Returns:
          Their biases, (batch, heads, f, reads), `MASKED` where nothing is remembered;
          and their values, a list of (batch, heads, f, size).
        """

    def after_features(self, inputs: tuple, count: int) -> tuple:
        """The inputs of `make`, with so many such keys before the others."""
        queries, keys = inputs
        return queries, after_identity(keys, count)

    @abc.abstractmethod
    def left_by(self, parts, biases, values):
        """The state after a read, a `models.attention.cache.State` of one beam.

        Args:
          parts: of the operator.
          biases: b of the read, (batch, heads, m, 1).
          values: (batch, heads, m, size).
        """


def after_identity(keys, count: int):
    """Keys (batch, heads, m, f) after the rows of the identity."""
    return ops.concatenate([identity(keys, count), keys], axis=2)


class SourceDecoding(Decoding):
    """What an `Operator` has that decodes and serves as cross-attention, too."""

    @abc.abstractmethod
    def source_cache(self, keys, biases, mask, values):
        """What cross-attention keeps of a source.

        Args:
          biases: (batch, heads, m, reads), `MASKED` at padding.
          mask: bool (batch, m), true at real tokens; None if all are real.
          values: (batch, heads, m, size), those of all reads.
        """

    @abc.abstractmethod
    def read_source(self, queries, cache):
        """What each read gives, a list of (batch, beams, d)."""


def each_read(attended, dtype) -> list:
    """What each read gives, (batch, beams, d), of all that is attended, (batch, heads,
    reads, beams, size)."""
    reads = attended.shape[2]
    return [
        merge_heads(ops.cast(attended[:, :, number], dtype)) for number in range(reads)
    ]


def beams_first(x):
    """float32 (batch, beams, heads, size) of (batch, heads, beams, size)."""
    return ops.einsum("bhns->bnhs", ops.cast(x, "float32"))
