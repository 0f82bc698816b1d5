"""Checksums of the files in a folder: damage is found and named."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from common.errors import UserError

NAME = "checksums.json"


class DamagedError(UserError):
    """A file is not what was written; the message names it."""


def write(folder: Path, names: Iterable[str]) -> None:
    """Writes the SHA-256 of files of a folder to `checksums.json` in it."""
    sums = {name: sha256(folder / name) for name in sorted(names)}
    # Under its name only when it is whole: it tells that the others are.
    unfinished = folder / f"{NAME}.unfinished"
    unfinished.write_text(json.dumps(sums, indent=2))
    unfinished.replace(folder / NAME)


def read(folder: Path) -> dict[str, str]:
    """The sums by the files' names, as `write` wrote them.

    Raises:
      DamagedError: if they are missing, or are no such thing.
    """
    path = folder / NAME
    try:
        return dict(json.loads(path.read_text()))
    except FileNotFoundError:
        raise DamagedError(f"{path}: expected checksums, found no such file") from None
    except (ValueError, TypeError):
        raise DamagedError(f"{path}: expected checksums, found damage") from None


def check(folder: Path) -> None:
    """Compares the files of a folder with its `checksums.json`.

    Raises:
      DamagedError: for the first that is missing or has another content.
    """
    for name, expected in read(folder).items():
        path = folder / name
        if not path.is_file():
            raise DamagedError(f"{path}: expected a file, found none")
        if sha256(path) != expected:
            raise DamagedError(
                f"{path}: expected the content that was written, found another; the "
                "file is damaged or was edited"
            )


def sha256(path: Path) -> str:
    """Of the content of a file, in hexadecimal."""
    with path.open("rb") as file:
        return digest(file)


def digest(file: BinaryIO) -> str:
    """The SHA-256 of what is still to be read of an open file, in hexadecimal."""
    sums = hashlib.sha256()
    while block := file.read(2**20):
        sums.update(block)
    return sums.hexdigest()
