"""Token ids of many pairs, packed: millions of them are a few arrays."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from data.tokenizers.subwords import END


@dataclass(frozen=True)
class PackedPairs:
    """Pairs of token ids, without start and end.

    Attributes:
      tokens: ids, end to end: a pair's source, its target, the next pair's source; the
        smallest unsigned type that fits.
      lengths: int32 [pairs, 2], tokens of each source and target.
    """

    tokens: np.ndarray
    lengths: np.ndarray

    @classmethod
    def join(cls, parts: list["PackedPairs"]) -> "PackedPairs":
        """One after the other; at least one."""
        return cls(
            np.concatenate([part.tokens for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def __len__(self):
        return len(self.lengths)

    @cached_property
    def _starts(self) -> np.ndarray:
        """int64 [pairs], where the tokens of each pair start."""
        sizes = self.lengths.sum(axis=1, dtype=np.int64)
        return np.cumsum(sizes) - sizes

    @property
    def longer_sides(self) -> np.ndarray:
        """int32 [pairs], tokens of the longer side of each, its end included."""
        return self.lengths.max(axis=1) + 1

    def take(self, indices: np.ndarray) -> "PackedPairs":
        """The pairs of these indices, in their order."""
        lengths = self.lengths[indices]
        sizes = lengths.sum(axis=1, dtype=np.int64)
        shifts = self._starts[indices] - (np.cumsum(sizes) - sizes)
        positions = np.arange(sizes.sum()) + np.repeat(shifts, sizes)
        return PackedPairs(self.tokens[positions], lengths)

    def batch(self, indices: np.ndarray, num_rows: int, length: int) -> dict:
        """A batch of the pairs of these indices, and empty rows below them.

        Returns:
          {"inputs", "targets"}: sources and targets, int32 [num_rows, length], each
          closed by `END` and padded with zeros.
        """
        starts, lengths = self._starts[indices], self.lengths[indices]
        return {
            "inputs": self._padded(starts, lengths[:, 0], num_rows, length),
            "targets": self._padded(
                starts + lengths[:, 0], lengths[:, 1], num_rows, length
            ),
        }

    def _padded(self, starts, lengths, num_rows, length):
        padded = np.zeros((num_rows, length), np.int32)
        columns = np.arange(length)
        real = columns < lengths[:, None]
        filled = padded[: len(starts)]
        filled[real] = self.tokens[(starts[:, None] + columns)[real]]
        filled[np.arange(len(starts)), lengths] = END
        return padded
