"""Length buckets: which examples share a batch, and how many."""

import numpy as np

from common.fields import integer, lengths

# Of the `data` part of a config, where texts are batched by their length.
FIELDS = {
    "max_length": integer(
        "The most tokens: a longer text is cut, a longer training pair left out.",
        maximum=1_000_000,
    ),
    "bucket_lengths": lengths(
        "Lengths that batches have, up to max_length; a text goes to the first that "
        "holds it."
    ),
}
BATCH_UNITS = ("sentences", "tokens")


def fit_buckets(config) -> None:
    """Makes `bucket_lengths` end at `max_length`, so that one flag sets both.

    Longer buckets are dropped, and one of `max_length` is added where none is.

    Args:
      config: the `data` part of a config; its `bucket_lengths` change.
    """
    limit = config.max_length
    shorter = (length for length in config.bucket_lengths if length < limit)
    config.bucket_lengths = (*shorter, limit)


class Buckets:
    """Length buckets, and how many rows a batch of each has.

    Args:
      lengths: increasing; an example belongs to the first that holds it.
      batch_size: rows of every batch. With the unit "tokens" it is how many tokens of a
        side a batch has at most: length n has batch_size // n rows, at least one, and a
        multiple of 8 where there are more than 8.
      batch_unit: "sentences" or "tokens".

    Attributes:
      lengths, rows: int64 [buckets].
    """

    def __init__(self, lengths, batch_size: int, batch_unit: str = "sentences"):
        self.batch_size, self.batch_unit = batch_size, batch_unit
        self.lengths = np.asarray(lengths, np.int64)
        self.rows = np.full_like(self.lengths, batch_size)
        if batch_unit == "tokens":
            rows = np.maximum(batch_size // self.lengths, 1)
            self.rows = np.where(rows > 8, rows // 8 * 8, rows)

    @property
    def batch_shape(self) -> list[int | None]:
        """[rows, length] of the batches, None where they differ."""
        return [
            int(sizes[0]) if len(set(sizes)) == 1 else None
            for sizes in (self.rows, self.lengths)
        ]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(rows, length) of the batches of each bucket."""
        return list(zip(self.rows.tolist(), self.lengths.tolist(), strict=True))

    def extended(self, longest: int, most: int | None = None) -> "Buckets":
        """These buckets, and longer ones for examples up to the length `longest`.

        Their lengths are multiples of the last, or `most` where that is less and given.
        Their batches have fewer rows, so that they take no more memory than others.
        """
        last = self.lengths[-1]
        longer = range(2 * last, longest + last, last)
        lengths = [*self.lengths, *(min(x, most or x) for x in longer)]
        buckets = Buckets(lengths, self.batch_size, self.batch_unit)
        fewer = np.maximum(buckets.rows * last**2 // buckets.lengths**2, 1)
        buckets.rows = np.where(buckets.lengths > last, fewer, buckets.rows)
        return buckets

    def count(self, lengths: np.ndarray) -> np.ndarray:
        """int64 [buckets], how many examples of these lengths belong to each."""
        return np.bincount(self._of(lengths), minlength=len(self.lengths))

    def num_batches(self, counts: np.ndarray) -> int:
        """Batches of so many examples of each bucket, the last of each filled up."""
        return int(np.sum(-(-counts // self.rows)))

    def plan(self, lengths: np.ndarray, order: np.ndarray, flush: bool = True):
        """Deals examples to batches.

        Args:
          lengths: of all examples.
          order: indices of those to deal, in the order in which to deal them.
          flush: also make batches that are not full.

        Returns:
          (bucket, indices) of every batch, bucket by bucket, and the indices that are
          left, fewer than a batch of each bucket.
        """
        buckets = self._of(lengths[order])
        batches, left = [], [np.zeros(0, np.int64)]
        for bucket, rows in enumerate(self.rows):
            members = order[buckets == bucket]
            end = len(members) if flush else len(members) // rows * rows
            starts = range(0, end, rows)
            batches += [(bucket, members[start : start + rows]) for start in starts]
            left.append(members[end:])
        return batches, np.concatenate(left)

    def _of(self, lengths):
        return np.searchsorted(self.lengths, lengths)
