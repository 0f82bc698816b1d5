"""Finding and reading text files, with errors that say where."""

import os
from collections.abc import Iterator
from pathlib import Path

from data.errors import DataError, bad_row


def data_path(directory: str | None, dataset: str, layout: str) -> Path:
    """The path that `data.dir` names.

    Raises:
      DataError: if the flag is missing, or names nothing that exists.
    """
    if not directory:
        raise DataError(
            f"--config.data.dir: expected the path of {layout} for {dataset}, "
            "found nothing"
        )
    path = Path(directory).expanduser()
    if not path.exists():
        raise DataError(f"{path}: expected {layout}, found no such file or folder")
    return path


def require_file(path: Path, content: str) -> Path:
    """Returns `path` if it is a file that is not empty.

    Raises:
      DataError: otherwise, naming the path and the expected content.
    """
    if not path.is_file():
        raise DataError(f"{path}: expected {content}, found no such file")
    if path.stat().st_size == 0:
        raise bad_row(path, 1, content, "an empty file")
    return path


def decode_line(path, number: int, raw: bytes) -> str | DataError:
    """Decodes one line, or returns the error that names its first bad byte."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        found = f"the invalid byte 0x{byte:02x} at column {error.start + 1}"
        return bad_row(path, number, "UTF-8 text", found)


def lines(path: Path) -> Iterator[tuple[int, str | DataError]]:
    """Yields (line number from 1, line without its end, or the error) of a file."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            yield number, decode_line(path, number, raw.rstrip(b"\r\n"))


def identify(path: Path) -> tuple:
    """What changes when a file does: its resolved name, size and time of change."""
    status = os.stat(path)
    return str(path.resolve()), status.st_size, status.st_mtime_ns
