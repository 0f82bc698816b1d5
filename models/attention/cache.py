"""What decoding keeps of earlier tokens: slots for each of them, or states.

The queries of one sentence are its beams, (batch, beams, width). A cache is any nesting
of tuples and lists of leaves, which a beam search treats alike, the `SlotMap` too:

- `Slots` hold something for each position and beam. A beam that goes on from another
  need not copy its past: the `SlotMap` of the cache says whose slots it sees.
- `State`s have a size that no position changes. A beam that goes on from another takes
  its state over.

A leaf is a tuple of tensors with the methods `grow`, `settle` and `hand_on`, and
`grows`, which says whether it needs room for each position.
"""

from typing import Any, NamedTuple

from keras import ops

# Slots are written RECENT positions at a time.
RECENT = 16
# Slots start with so many positions, and double when they are full: shapes stay static,
# and short targets do not attend to the slots of long ones.
FIRST_POSITIONS = 2 * RECENT


class Slots(NamedTuple):
    """What is kept of all positions and beams; slot = position * beams + beam.

    A new position is appended to a small array, `recent`, which drops its oldest one.
    Every `RECENT` positions it is copied to the large one, `settled`: where writing
    copies the array, as in TensorFlow without XLA, few bytes are copied. Attention
    takes both together, the slots of `settled` first.

    Attributes:
      settled: (batch, heads, slots, size).
      recent: (batch, heads, RECENT * beams, size), of the latest positions, the last
        one at the end.
    """

    settled: Any
    recent: Any

    grows = True

    @classmethod
    def empty(cls, batch_size, beams, num_heads, size, dtype):
        """Without settled slots: `grow` adds them."""
        shape = (batch_size, num_heads)
        return cls(
            ops.zeros((*shape, 0, size), dtype),
            ops.zeros((*shape, RECENT * beams, size), dtype),
        )

    def append(self, new):
        """With the slots of one more position, (batch, heads, beams, size)."""
        latest = self.recent[:, :, new.shape[2] :]
        new = ops.cast(new, latest.dtype)
        return self._replace(recent=ops.concatenate([latest, new], axis=2))

    def rows(self):
        """(batch, heads, 1, slots) of slots of size 1, for the queries of all beams."""
        return ops.concatenate(self, axis=2)[:, :, None, :, 0]

    def scores(self, queries):
        """Products of (batch, heads, queries, size) with all slots."""
        products = [ops.matmul(queries, ops.swapaxes(part, 2, 3)) for part in self]
        return ops.concatenate(products, axis=-1)

    def weighted_sum(self, weights):
        """Sums over all slots by weights (batch, heads, queries, slots)."""
        split = ops.shape(self.settled)[2]
        settled = ops.matmul(weights[..., :split], self.settled)
        return settled + ops.matmul(weights[..., split:], self.recent)

    def distances(self, position):
        """Of all slots' positions from one, a scalar: int32 (slots,)."""
        beams = self.recent.shape[2] // RECENT
        positions = ops.shape(self.settled)[2] // beams
        parts = [ops.arange(positions) - position, ops.arange(1 - RECENT, 1)]
        return ops.repeat(ops.concatenate(parts), beams)

    def grow(self, positions):
        beams = self.recent.shape[2] // RECENT
        return self._replace(settled=longer(self.settled, positions * beams, axis=2))

    def settle(self, position):
        batch, heads, slots, size = ops.shape(self.recent)
        # Not slice_update: TensorFlow runs that by XLA, which compiles each shape anew.
        parts = ops.reshape(self.settled, (batch, heads, -1, slots, size))
        here = ops.arange(ops.shape(parts)[2]) == position // RECENT - 1
        parts = ops.where(here[:, None, None], self.recent[:, :, None], parts)
        return self._replace(settled=ops.reshape(parts, ops.shape(self.settled)))

    def hand_on(self, before, parents, active):
        return self  # the map does it

    def num_bytes(self):
        """Bytes of one position, of all sentences and beams."""
        return _num_bytes(self.recent) // RECENT


class State(NamedTuple):
    """What is kept in an array of one size.

    Attributes:
      value: (batch, beams, ...).
    """

    value: Any

    grows = False

    def grow(self, positions):
        return self

    def settle(self, position):
        return self

    def hand_on(self, before, parents, active):
        return type(self)(_hand_on(self.value, before.value, parents, active))

    def num_bytes(self):
        """Bytes of all sentences and beams."""
        return _num_bytes(self.value)


class SlotMap(NamedTuple):
    """Whose slots hold the past of each beam.

    Attributes:
      owners: int32 (batch, beams, positions), the beam in whose slot each position of a
        beam's text lies.
    """

    owners: Any

    grows = True

    @classmethod
    def empty(cls, batch_size, beams):
        """Without positions: `grow` adds them."""
        return cls(ops.zeros((batch_size, beams, 0), "int32"))

    def enter(self, position):
        """The map when each beam has its own slot at a position, a scalar."""
        _, beams, positions = ops.shape(self.owners)
        now = ops.arange(positions) == position
        numbers = ops.arange(beams, dtype="int32")[:, None]
        return SlotMap(ops.where(now, numbers, self.owners))

    def visible(self, position):
        """Which slots the beams see at a position, its own included.

        Returns:
          bool (batch, beams, (positions + RECENT) * beams), in the order of `Slots`.
        """
        batch, beams, positions = ops.shape(self.owners)
        age = ops.arange(RECENT - 1, -1, -1)
        settled = ops.arange(positions) < position // RECENT * RECENT
        recent = age <= position % RECENT
        latest = ops.take(self.owners, ops.maximum(position - age, 0), axis=2)
        owners = ops.concatenate([self.owners, latest], axis=2)[..., None]
        exist = ops.concatenate([settled, recent])[:, None]
        visible = ops.logical_and(owners == ops.arange(beams, dtype="int32"), exist)
        return ops.reshape(visible, (batch, beams, -1))

    def grow(self, positions):
        return SlotMap(longer(self.owners, positions, axis=2))

    def settle(self, position):
        return self

    def hand_on(self, before, parents, active):
        return SlotMap(_hand_on(self.owners, before.owners, parents, active))


def leaves(cache) -> list:
    """All leaves of a cache."""
    if hasattr(cache, "hand_on"):
        return [cache]
    return [leaf for part in cache for leaf in leaves(part)]


def grows(cache) -> bool:
    """Whether any leaf needs room for each position."""
    return any(leaf.grows for leaf in leaves(cache))


def capacity(cache, filled, max_length):
    """For how many positions to make room when so many are filled.

    Args:
      filled: positions that are filled, an int or a scalar tensor.
      max_length: how many there may be in the end, likewise.
    """
    if not grows(cache):
        return max_length
    static = isinstance(max_length, int)
    smaller, larger = (min, max) if static else (ops.minimum, ops.maximum)
    whole = (max_length + RECENT - 1) // RECENT * RECENT
    return smaller(larger(2 * filled, FIRST_POSITIONS), whole)


def period(cache, positions: int) -> int:
    """How many positions there may be from one `settle` to the next.

    Args:
      positions: for which the cache has room.
    """
    return RECENT if grows(cache) else positions


def grow(cache, positions: int):
    """The cache with room for so many positions."""
    return _map(lambda leaf: leaf.grow(positions), cache)


def settle(cache, position):
    """The cache when `position` is the next; to be called after each `period`."""
    return _map(lambda leaf: leaf.settle(position), cache)


def hand_on(cache, before, parents, active):
    """The cache when beams go on from others.

    Args:
      cache: after a position.
      before: that position.
      parents: int32 (batch, beams), from which beam each goes on.
      active: bool (batch,); the states of other sentences stand still.
    """
    return _map(lambda new, old: new.hand_on(old, parents, active), cache, before)


def repeat(cache, beams: int):
    """The cache of so many beams that go on from the only one; it has states alone."""
    return _map(lambda leaf: type(leaf)(ops.repeat(leaf.value, beams, axis=1)), cache)


def num_bytes(cache) -> tuple[int, int]:
    """Bytes that grow with each position, and bytes that do not."""
    growing, fixed = 0, 0
    for leaf in leaves(cache):
        if leaf.grows:
            growing += leaf.num_bytes()
        else:
            fixed += leaf.num_bytes()
    return growing, fixed


def _map(function, *caches):
    first = caches[0]
    if hasattr(first, "hand_on"):
        return function(*caches)
    parts = [_map(function, *parts) for parts in zip(*caches, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)


def longer(x, size, axis: int):
    """The array with zeros appended along an axis, to a size of at least its own."""
    shape = list(ops.shape(x))
    shape[axis] = size - shape[axis]
    return ops.concatenate([x, ops.zeros(shape, x.dtype)], axis=axis)


def pick(x, indices):
    """x[b, indices[b, i]]: (batch, count, ...) of (batch, beams, ...).

    Whole rows are copied, which take_along_axis does number by number.
    """
    batch, beams, *inner = ops.shape(x)
    rows = ops.reshape(x, (batch * beams, *inner))
    return ops.take(rows, indices + beams * ops.arange(batch)[:, None], axis=0)


def _hand_on(new, old, parents, active):
    inner = tuple(range(1, len(new.shape)))
    return ops.where(ops.expand_dims(active, inner), pick(new, parents), old)


def _num_bytes(array):
    return ops.convert_to_numpy(array).nbytes
