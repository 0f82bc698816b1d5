"""Token ids of many rows, packed: millions of them are a few arrays."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

# The class of a row that only fills up a batch; it counts in no loss or metric.
FILLER_TARGET = -1


@dataclass(frozen=True)
class PackedRows:
    """Rows of token ids: texts with or without their classes, or pairs of texts.

    Attributes:
      tokens: ids, end to end, of a pair's source before those of its target; the
        smallest unsigned type that fits.
      lengths: int32 [rows, texts], tokens of each text of a row.
      targets: int32 [rows], the class of each text; None where there are no classes.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    targets: np.ndarray | None = None

    @classmethod
    def join(cls, parts: list["PackedRows"]) -> "PackedRows":
        """One after the other; at least one."""
        columns = zip(*((x.tokens, x.lengths, x.targets) for x in parts), strict=True)
        return cls(*(None if x[0] is None else np.concatenate(x) for x in columns))

    def __len__(self):
        return len(self.lengths)

    @cached_property
    def _starts(self) -> np.ndarray:
        """int64 [rows], where the tokens of each row start."""
        sizes = self.lengths.sum(axis=1, dtype=np.int64)
        return np.cumsum(sizes) - sizes

    @property
    def longest(self) -> np.ndarray:
        """int32 [rows], tokens of the longest text of each."""
        return self.lengths.max(axis=1)

    @property
    def fillers(self) -> dict[str, int]:
        """See `data.batches.Batches`."""
        return {"inputs": 0, "targets": 0 if self.targets is None else FILLER_TARGET}

    def take(self, indices: np.ndarray) -> "PackedRows":
        """The rows of these indices, in their order."""
        lengths = self.lengths[indices]
        sizes = lengths.sum(axis=1, dtype=np.int64)
        shifts = self._starts[indices] - (np.cumsum(sizes) - sizes)
        positions = np.arange(sizes.sum()) + np.repeat(shifts, sizes)
        targets = None if self.targets is None else self.targets[indices]
        return PackedRows(self.tokens[positions], lengths, targets)

    def batch(self, indices: np.ndarray, num_rows: int, length: int) -> dict:
        """A batch of the rows of these indices, and empty rows below them.

        Returns:
          {"inputs", "targets"}: texts, int32 [num_rows, length], padded with zeros, and
          the same of their translations, or their classes, int32 [num_rows], if any.
        """
        columns, starts = [], self._starts[indices]
        for lengths in self.lengths[indices].T:
            columns.append(np.zeros((num_rows, length), np.int32))
            places = np.arange(length)
            real = places < lengths[:, None]
            tokens = self.tokens[(starts[:, None] + places)[real]]
            columns[-1][: len(indices)][real] = tokens
            starts = starts + lengths
        if self.targets is not None:
            columns.append(np.full(num_rows, FILLER_TARGET, np.int32))
            columns[-1][: len(indices)] = self.targets[indices]
        return dict(zip(("inputs", "targets"), columns, strict=False))
