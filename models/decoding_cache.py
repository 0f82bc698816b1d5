"""Buffers that keep what decoding has computed of earlier tokens.

The queries of one sentence are its beams, (batch, beams, width). A buffer is an array
(batch, heads, slots, size), with a slot for each position and beam, slot = position *
beams + beam, so that a new position is one contiguous write. A beam that goes on from
another one need not copy its past: `visible`, (batch, beams, slots), says whose slots
it sees. A cache is any nesting of buffers.
"""

import keras
from keras import ops


def write(buffer, new, position):
    """The buffer with the slots of one position replaced.

    Args:
      buffer: (batch, heads, slots, size).
      new: (batch, heads, beams, size).
      position: scalar, int32.
    """
    start = (0, 0, position * new.shape[2], 0)
    return ops.slice_update(buffer, start, ops.cast(new, buffer.dtype))


def grow(cache, slots):
    """The cache with empty slots added, up to `slots` of them."""

    def pad(buffer):
        more = slots - buffer.shape[2]
        return ops.pad(buffer, ((0, 0), (0, 0), (0, more), (0, 0)))

    return keras.tree.map_structure(pad, cache)
