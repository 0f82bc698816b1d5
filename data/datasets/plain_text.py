"""Plain text: files of lines, each of which is a document or a paragraph of one."""

from collections.abc import Iterator
from pathlib import Path

from common.fields import choice, text
from data import files
from data.rows import DataError, Line

KIND = "plain_text"
SPLITS = ("train", "validation", "test")
SOURCES = ("files",)
TOKENIZERS = ("words", "subwords", "bytes")
FIELDS = {
    "source": choice("NAME[.gz] files.", *SOURCES),
    "train_name": text("NAME of the training file."),
    "validation_name": text("NAME of the validation file."),
    "test_name": text("NAME of the test file."),
}


def read(config, split: str) -> Iterator[Line | DataError]:
    """Yields the lines of "train", "validation" or "test", in order, blank ones too.

    Raises:
      DataError: if the file cannot be had, or is damaged.
    """
    return read_lines(_path(config, split))


def read_lines(path: Path) -> Iterator[Line | DataError]:
    """Yields the lines of a file.

    Raises:
      DataError: if it is damaged.
    """
    for number, raw in files.raw_lines(path):
        line = files.decode_line(path, number, raw)
        yield line if isinstance(line, DataError) else Line(raw)


def identify(config, split: str):
    """A value that changes when the text does, but not when it is moved or packed."""
    return files.identify(_path(config, split))


def require_files(config, *splits: str) -> None:
    """Raises `DataError` if the file of a split is missing."""
    for split in splits:
        _path(config, split)


def _path(config, split) -> Path:
    name = config[f"{split}_name"]
    root = files.data_path(config.dir, "plain text", f"the folder of {name}[.gz]")
    return files.find(root, name, "a line of text")
