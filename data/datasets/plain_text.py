"""Plain text: files of lines, each of which is a document or a paragraph of one."""

from collections.abc import Callable, Iterator
from pathlib import Path

from common.fields import choice, text
from data import files
from data.rows import DataError, Line

KIND = "plain_text"
SPLITS = ("train", "validation", "test")
TOKENIZERS = ("words", "subwords", "bytes")
FIELDS = {
    "source": choice("NAME[.gz] files.", "files"),
    "train_name": text("NAME of the training file."),
    "validation_name": text("NAME of the validation file."),
    "test_name": text("NAME of the test file."),
}


def functions_of(path: Callable) -> tuple[Callable, Callable, Callable]:
    """`read`, `identify` and `require_files` of a dataset of lines; see `data`.

    Args:
      path: function of the `data` part of a config, and of a split, that gives its
        file. It raises `DataError` if the file is missing.
    """

    def read(config, split: str) -> Iterator[Line | DataError]:
        """Yields the lines of "train", "validation" or "test", blank ones too."""
        file = path(config, split)
        for number, raw in files.raw_lines(file):
            line = files.decode_line(file, number, raw)
            yield line if isinstance(line, DataError) else Line(raw)

    def identify(config, split: str):
        """A value that changes when the text does, but not when it is moved."""
        return files.identify(path(config, split))

    def require_files(config, *splits: str) -> None:
        """Raises `DataError` if the file of a split is missing."""
        for split in splits:
            path(config, split)

    return read, identify, require_files


def _path(config, split) -> Path:
    name = config[f"{split}_name"]
    root = files.data_path(config.dir, "plain text", f"the folder of {name}[.gz]")
    return files.find(root, name, "a line of text")


read, identify, require_files = functions_of(_path)
