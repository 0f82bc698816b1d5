"""Reading an operator: the one gradient by hand of every attention.

With G = d out / s for s = K w, and c = -sum(G * out) over a head's numbers, the
gradient of K is a sum over all reads of G (w * V)^T + c w^T. Automatic differentiation
would make and add an array of K's size at each read. Here each read hands its two
factors to the block's start, which gives the operator all of them at once.
docs/attention.md, "The gradient, by hand".
"""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from models.attention.heads import largest, merge_heads, split_heads
from models.attention.operator import Operator
from models.gradients import copies, custom_gradient

# A denominator, of weights up to 1, under which smaller weights of its sum might have
# been lost: docs/attention.md, "The guard".
SMALL = 1e-20


class Read(NamedTuple):
    """What a read needs besides the operator, sizes (batch, heads, length, …).

    Attributes:
      biases: b, (m, 1).
      sums: what is divided by, (n, 1). It is s = K w, `bounded`, and infinite for a
        query that has nothing to read; 1 where the operator does not divide.
      weights: w, (m, 1), zero at padding. A constant to automatic differentiation.
      carriers: two arrays of zeros, (n, size) and (m, size). Their gradients are the
        factors G and w * V of this read.
    """

    biases: Any
    sums: Any
    weights: Any
    carriers: tuple


class Made(NamedTuple):
    """An operator that was made, and what its reads need.

    Attributes:
      operator: an `Operator`.
      parts: of it; constants to automatic differentiation.
      reads: {number: `Read`}. Each is taken once: used twice, the factors of two reads
        would add up before they multiply.
      inputs: {"now": those of the operator}, for `DividedOperator.read_apart`. A read
        hands them on to the next. If all took the same ones, the backward pass would
        add up zeros of each read that did without.
      is_safe: scalar, whether no sum is so small that weights of it might be lost.
    """

    operator: Operator
    parts: tuple
    reads: dict
    inputs: dict
    is_safe: Any

    def read(self, number: int, values):
        """What a read gives, (batch, n, d), heads merged, of values (batch, m, d).

        Raises:
          ValueError: if this read was taken before.
        """
        if number not in self.reads:
            raise ValueError(f"read {number} was taken before: expected once")
        now, inputs = self.reads.pop(number), self.inputs["now"]
        values = ops.cast(values, now.weights.dtype)

        def fast():
            return _read(self.operator, self.parts, now, values), *inputs

        def apart():
            by_head = split_heads(values, self.operator.num_heads)
            read, handed_on = zip(*(copies(x, 2) for x in inputs), strict=True)
            attended = self.operator.read_apart(read, now.biases, by_head)
            sees = ops.isfinite(ops.stop_gradient(now.sums))
            attended = ops.where(sees, attended, ops.zeros_like(attended))
            return merge_heads(ops.cast(attended, values.dtype)), *handed_on

        if not self.operator.divides:
            return fast()[0]
        attended, *inputs = ops.cond(self.is_safe, fast, apart)
        self.inputs["now"] = tuple(inputs)
        return attended


class OfValues(NamedTuple):
    """What was made, and the values of its only read, (batch, m, d): those that it is
    given are left aside."""

    made: Any
    values: Any

    def read(self, number, values):
        """See `Made.read`."""
        return self.made.read(number, self.values)

    def left(self):
        """What the text leaves, see `models.attention.memory`."""
        return self.made.left()


class Attended(NamedTuple):
    """What the only read gives, (batch, n, d), where it is known at once."""

    attended: Any

    def read(self, number, values):
        """See `Made.read`."""
        return self.attended


def start(operator: Operator, inputs: tuple, biases, mask, length, size: int) -> Made:
    """Makes an operator to be read once for each bias.

    Args:
      inputs: as `Operator.make` takes them.
      biases: b of all reads, (batch, heads, m, reads), `MASKED` at padding.
      mask: bool (batch, m), true at real tokens; None if all are real.
      length: n, of the queries.
      size: of a head's values.
    """
    num_reads, divides = biases.shape[-1], operator.divides
    dtype = inputs[0].dtype

    @custom_gradient
    def make(*arguments):
        *inputs, biases = arguments
        parts = operator.make(tuple(inputs), num_reads * (size + divides))
        if divides:
            weights = ops.exp(biases - largest(biases, axis=2))
        else:
            weights = 2 * ops.sigmoid(biases)
        weights = ops.cast(weights, dtype)
        sums = operator.times(parts, weights) if divides else ops.ones_like(biases[:1])
        batch, heads, keys, _ = ops.shape(biases)
        carriers = (
            ops.zeros((batch, heads, rows, size), dtype) for rows in (length, keys)
        )

        def backward(*gradients):
            d_sums, *gradients = gradients[1 : 2 + 2 * num_reads]
            left, right = gradients[::2], gradients[1::2]
            if not divides:
                left, right = (ops.concatenate(x, axis=-1) for x in (left, right))
                return *operator.gradient(parts, left, right), None
            # Made to need what the last gradient gives: w * V of all reads is known
            # before, and would be joined when memory is fullest.
            total = ops.sum(d_sums)
            after = ops.where(ops.isnan(total), total, weights)
            d_inputs = operator.gradient(
                parts,
                ops.concatenate([*left, d_sums], axis=-1),
                ops.concatenate([*right, after], axis=-1),
            )
            d_weights = operator.transposed_times(parts, d_sums)
            return *d_inputs, ops.cast(weights * d_weights, biases.dtype)

        return (weights, sums, *tuple(carriers) * num_reads, *parts), backward

    weights, sums, *arrays = make(*inputs, biases)
    carriers, parts = arrays[: 2 * num_reads], arrays[2 * num_reads :]
    weights, *parts = map(ops.stop_gradient, (weights, *parts))
    is_safe = True
    if divides:
        sums = operator.bounded(sums, inputs, biases)
        sums, is_safe = _checked(operator, parts, sums, mask)
    reads = zip(
        *(ops.split(x, num_reads, axis=-1) for x in (biases, sums, weights)),
        zip(carriers[::2], carriers[1::2], strict=True),
        strict=True,
    )
    reads = {number: Read(*read) for number, read in enumerate(reads)}
    return Made(operator, tuple(parts), reads, {"now": tuple(inputs)}, is_safe)


def _checked(operator, parts, sums, mask):
    """Sums to divide by, and whether none is so small that it may have lost some."""
    has_lost = sums <= SMALL
    sums = ops.where(has_lost, ops.ones_like(sums), sums)
    sees = operator.sees(parts, mask, ops.shape(sums)[2])
    if sees is not None:
        has_lost = ops.logical_and(has_lost, sees)
        sums = ops.where(sees, sums, ops.cast(np.inf, sums.dtype))
    return sums, ops.logical_not(ops.any(has_lost))


def _read(operator, parts, now, values):
    """A read by `parts`. It keeps two arrays as large as the values, w * V and out."""
    divides = operator.divides

    @custom_gradient
    def read(values, biases, sums, left, right, weights, *parts):
        weighted = weights * split_heads(values, operator.num_heads)
        outputs = operator.times(parts, weighted)
        outputs = merge_heads(outputs / sums if divides else outputs)

        def backward(d_outputs):
            left, d_sums = split_heads(d_outputs, operator.num_heads), None
            if divides:
                by_head = split_heads(outputs, operator.num_heads)
                left = left / sums
                d_sums = -ops.sum(left * by_head, axis=-1, keepdims=True)
            d_weighted = operator.transposed_times(parts, left)
            d_biases = ops.sum(weighted * d_weighted, axis=-1, keepdims=True)
            if not divides:  # the slope of 2 sigmoid(b), by w
                d_biases = d_biases * (1 - weights / 2)
            return (
                merge_heads(weights * d_weighted),
                ops.cast(d_biases, biases.dtype),
                d_sums,
                *(left, weighted),
                *[None] * (1 + len(parts)),
            )

        return outputs, backward

    return read(values, now.biases, now.sums, *now.carriers, now.weights, *parts)
