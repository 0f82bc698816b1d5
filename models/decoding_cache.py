"""Buffers that keep what decoding has computed of earlier tokens.

The queries of one sentence are its beams, (batch, beams, width). A buffer has a slot
for each position and beam, slot = position * beams + beam. A beam that goes on from
another one need not copy its past: a mask says whose slots it sees.

A new position is appended to a small array, `recent`, which drops its oldest one. Every
`RECENT` positions it is copied to the large one, `settled`: where writing copies the
array, as in TensorFlow without XLA, few bytes are copied. Attention takes both
together, the slots of `settled` first. A cache is any nesting of buffers.
"""

from typing import Any, NamedTuple

from keras import ops

RECENT = 16


class Buffer(NamedTuple):
    """What is kept of all slots.

    Attributes:
      settled: (batch, heads, slots, size).
      recent: (batch, heads, RECENT * beams, size), of the latest positions, the last
        one at the end.
    """

    settled: Any
    recent: Any


def empty(batch_size, beams, num_heads, size, dtype):
    """A buffer without settled slots: `grow` adds them."""
    shape = (batch_size, num_heads)
    return Buffer(
        ops.zeros((*shape, 0, size), dtype),
        ops.zeros((*shape, RECENT * beams, size), dtype),
    )


def append(buffer, new):
    """The buffer with the slots of one more position, (batch, heads, beams, size)."""
    kept = buffer.recent[:, :, new.shape[2] :]
    new = ops.cast(new, kept.dtype)
    return buffer._replace(recent=ops.concatenate([kept, new], axis=2))


def grow(cache, positions):
    """The cache with settled slots added, up to those of `positions`."""

    def pad(buffer):
        beams = buffer.recent.shape[2] // RECENT
        more = positions * beams - buffer.settled.shape[2]
        widths = ((0, 0), (0, 0), (0, more), (0, 0))
        return buffer._replace(settled=ops.pad(buffer.settled, widths))

    return _map(pad, cache)


def settle(cache, position):
    """The cache with the recent slots settled, when `position` is the next to append.

    To be called before each position that is a multiple of `RECENT`, but the first.
    """

    def move(buffer):
        settled = place(buffer.settled, buffer.recent, position // RECENT - 1)
        return buffer._replace(settled=settled)

    return _map(move, cache)


def place(array, new, index):
    """The array with the index-th of its parts, each as large as `new`, replaced.

    Args:
      array: (batch, heads, parts * slots, size).
      new: (batch, heads, slots, size).
      index: scalar, int32.
    """
    batch, heads, slots, size = new.shape
    # Not slice_update: TensorFlow runs that by XLA, which compiles each shape anew.
    parts = ops.reshape(array, (batch, heads, -1, slots, size))
    here = ops.arange(parts.shape[2]) == index
    parts = ops.where(here[:, None, None], new[:, :, None], parts)
    return ops.reshape(parts, array.shape)


def _map(function, cache):
    if isinstance(cache, Buffer):
        return function(cache)
    parts = (_map(function, part) for part in cache)
    return type(cache)(*parts) if hasattr(cache, "_fields") else type(cache)(parts)


def visible_slots(slots, position):
    """Which slots of a buffer the beams see at a position.

    Args:
      slots: int32 (batch, beams, positions), whose slot holds each position of a beam's
        text; positions are those of the settled slots, a multiple of `RECENT`.
      position: scalar, int32; its own slots are seen.

    Returns:
      bool (batch, beams, (positions + RECENT) * beams).
    """
    batch, beams, positions = slots.shape
    age = ops.arange(RECENT - 1, -1, -1)
    settled = ops.arange(positions) < position // RECENT * RECENT
    recent = age <= position % RECENT
    of_recent = ops.take(slots, ops.maximum(position - age, 0), axis=2)
    slots = ops.concatenate([slots, of_recent], axis=2)[..., None]
    exist = ops.concatenate([settled, recent])[:, None]
    visible = ops.logical_and(slots == ops.arange(beams, dtype="int32"), exist)
    return ops.reshape(visible, (batch, beams, -1))


def all_slots(buffer):
    """(batch, heads, slots, size) of settled and recent slots together."""
    return ops.concatenate(buffer, axis=2)


def scores(queries, buffer):
    """Products of (batch, heads, queries, size) with all slots."""
    products = [ops.matmul(queries, ops.swapaxes(part, 2, 3)) for part in buffer]
    return ops.concatenate(products, axis=-1)


def weighted_sum(weights, buffer):
    """Sums over all slots by weights (batch, heads, queries, slots)."""
    split = buffer.settled.shape[2]
    settled = ops.matmul(weights[..., :split], buffer.settled)
    return settled + ops.matmul(weights[..., split:], buffer.recent)
