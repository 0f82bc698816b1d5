"""What is wrong with the input, said in one line, and what to do about bad rows."""

from collections.abc import Iterator

from common.errors import UserError


class DataError(UserError):
    """Input that cannot be used; the message is for the user, on one line."""


def bad_row(path, line: int, expected: str, found: str) -> DataError:
    """A `DataError` that names file, line (from 1), what was expected and found."""
    return DataError(f"{path}:{line}: expected {expected}, found {found}")


class RowErrors:
    """Raises or counts the errors of single rows, as `on_error` says.

    Args:
      on_error: "fail" raises the first error; "skip" counts them in `skipped`.
    """

    def __init__(self, on_error: str = "fail"):
        self.on_error = on_error
        self.skipped = 0

    def keep_good(self, rows: Iterator) -> Iterator:
        """Yields the good rows of a reader that yields a `DataError` for a bad one."""
        for row in rows:
            if not isinstance(row, DataError):
                yield row
            elif self.on_error == "fail":
                raise row
            else:
                self.skipped += 1
