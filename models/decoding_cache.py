"""Buffers that keep what decoding has computed of earlier tokens.

The queries of one sentence are its beams, (batch, beams, width). A buffer has a slot
for each position and beam, slot = position * beams + beam, so that a new position is
one contiguous write. A beam that goes on from another one need not copy its past:
`visible`, (batch, beams, slots), says whose slots it sees.
"""

from keras import ops


def write(buffer, new, position, axis):
    """The buffer with the slots of one position along `axis` replaced.

    Args:
      buffer: array with positions * beams slots along `axis`.
      new: the same with one slot per beam.
      position: scalar, int32.
    """
    start = [0] * len(buffer.shape)
    start[axis] = position * new.shape[axis]
    return ops.slice_update(buffer, start, ops.cast(new, buffer.dtype))
