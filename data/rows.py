"""What a row of a dataset is, and what becomes of a bad one.

Each kind of dataset has one kind of tuple. Texts are UTF-8. `texts` are those of a row,
in their order.
"""

from collections.abc import Iterator
from typing import NamedTuple

from common.errors import UserError


class Example(NamedTuple):
    """Classification: a text and its class, from 0."""

    text: bytes
    label: int

    @property
    def texts(self) -> tuple[bytes]:
        return (self.text,)


class Pair(NamedTuple):
    """Parallel text: a sentence and its translation."""

    source: bytes
    target: bytes

    @property
    def texts(self) -> tuple[bytes, bytes]:
        return self.source, self.target


class Line(NamedTuple):
    """Plain text: a line of it."""

    text: bytes

    @property
    def texts(self) -> tuple[bytes]:
        return (self.text,)


class DataError(UserError):
    """Input that cannot be used; the message is for the user, on one line."""


def bad_row(path, line: int, expected: str, actual: str) -> DataError:
    """A `DataError` that names file, line (from 1), what was expected and found."""
    return DataError(f"{path}:{line}: expected {expected}, found {actual}")


class GoodRows:
    """The good rows of a dataset's `read`, which yields a `DataError` for a bad one.

    Args:
      rows: from `read`.
      on_error: "fail" raises the first error; "skip" counts them in `skipped`.
    """

    def __init__(self, rows: Iterator, on_error: str = "fail"):
        self._rows, self._on_error = rows, on_error
        self.skipped = 0

    def __iter__(self) -> Iterator:
        for row in self._rows:
            if not isinstance(row, DataError):
                yield row
            elif self._on_error == "fail":
                raise row
            else:
                self.skipped += 1
