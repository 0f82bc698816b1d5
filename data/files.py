"""Finding and reading text files, with errors that say where; and cached folders."""

import codecs
import gzip
import hashlib
import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from common import checksums
from common.cache import cached
from common.downloads import DownloadError, download
from common.paths import make_path, size
from data.rows import DataError, bad_row

logger = logging.getLogger("transevolve")


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
    path = make_path(directory, "--config.data.dir")
    if not path.exists():
        raise DataError(
            f"{path}: expected {layout}, found no such file or folder; give its place "
            "by --config.data.dir, for a trained run by --data_dir"
        )
    return path


def cached_folder(config, name: str, identity, write: Callable[[Path], None]) -> Path:
    """A folder of `data.cache_dir` that was filled now or in an earlier run.

    Args:
      config: the `data` part of a config.
      name: what is in it.
      identity: JSON-serialisable; all that its content depends on.
      write: see `common.cache.cached`.
    """
    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
    folder = make_path(config.cache_dir, "--config.data.cache_dir")
    return cached(folder / f"{name}-{key}", write)


def downloaded(
    cache_dir,
    name: str,
    file: str,
    url: str,
    sha256: str,
    what: str,
    instead: str,
    unpack: Callable[[Path], None] = lambda path: None,
) -> Path:
    """A folder of `data.cache_dir` to which a file was downloaded, now or earlier.

    Args:
      cache_dir: `data.cache_dir`.
      name: of the folder.
      file: name of the file there.
      url, sha256: of the file.
      what: the flag and what it expects, for errors.
      instead: what a user without a network can do, for errors.
      unpack: function of the file's path that makes of it what the folder is to have.

    Raises:
      DataError: if another file comes, or none.
    """
    folder = make_path(cache_dir, "--config.data.cache_dir") / name

    def write(unfinished):
        logger.info("downloading %s to %s", url, folder)
        try:
            download(url, unfinished / file, sha256)
        except DownloadError as error:
            raise DataError(
                f"{what}, of SHA-256 {sha256[:8]}…, found {error}. Instead you can "
                f"{instead}"
            ) from error
        unpack(unfinished / file)

    return cached(folder, write)


def find(root: Path, name: str, content: str) -> Path:
    """The file NAME of a folder, or NAME.gz.

    Raises:
      DataError: if neither is there, or it is empty.
    """
    # Where a file was unpacked beside its archive, the plain one is faster to read.
    for path in (root / name, root / f"{name}.gz"):
        if path.is_file():
            return require_file(path, content)
    raise DataError(f"{root}: expected the file {name} or {name}.gz, found neither")


def require_file(path: Path, content: str) -> Path:
    """Returns `path` if it is a file that is not empty.

    Raises:
      DataError: otherwise, naming the path and the expected content.
    """
    if not path.is_file():
        raise DataError(f"{path}: expected {content}, found no such file")
    if size(path) == 0:
        raise bad_row(path, 1, content, "an empty file")
    return path


def decode_line(path, number: int, raw: bytes) -> str | DataError:
    """Decodes one line, or returns the error that names its first bad byte."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        place = f"the invalid byte 0x{byte:02x} at column {error.start + 1}"
        return bad_row(path, number, "UTF-8 text", place)


def lines(path: Path) -> Iterator[tuple[int, str | DataError]]:
    """Yields (line number from 1, line without its end, or the error) of a file."""
    for number, raw in raw_lines(path):
        yield number, decode_line(path, number, raw)


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields (line number from 1, line without its end) of a file, or of a .gz file.

    See `without_ends`.

    Raises:
      DataError: if the file cannot be read to its end.
    """
    number = 0
    with _opened(path, lambda: f"{path}:{number + 1}") as file:
        for number, line in enumerate(without_ends(file), start=1):
            yield number, line


def without_ends(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of a file without their ends, and without a byte order mark before them.

    Only a line feed ends a line; a carriage return before it goes, too.
    """
    mark = codecs.BOM_UTF8
    for line in lines:
        yield line.removeprefix(mark).rstrip(b"\r\n")
        mark = b""


def identify(path: Path) -> str:
    """The SHA-256 of a file's content, of a .gz file's unpacked.

    Neither a file's name nor its time says whether it is another: a copy is the same,
    and what was swapped may have both.

    Raises:
      DataError: if the file cannot be read to its end.
    """
    with _opened(path, lambda: path) as file:
        return checksums.digest(file)


@contextmanager
def _opened(path, place):
    """The file, unpacked; the function `place` says where it could not be read."""
    is_packed = path.suffix == ".gz"
    try:
        with (
            path.open("rb") as raw,
            gzip.open(raw) if is_packed else nullcontext(raw) as file,
        ):
            yield file
    except (OSError, EOFError, zlib.error) as error:
        expected = "a whole gzip file" if is_packed else "a readable file"
        raise DataError(f"{place()}: expected {expected}, found {error}") from None
