"""AG News: four topics of news, title and description (Zhang et al. 2015)."""

import csv
from collections.abc import Iterator
from pathlib import Path

from common.fields import choice
from data import files, tfds_source
from data.errors import DataError, bad_row
from data.examples import Example

KIND = "classification"
CLASS_NAMES = ("World", "Sports", "Business", "Sci/Tech")
SPLITS = ("train", "test")
SOURCES = ("tfds", "files")
TOKENIZERS = ("wordpiece", "bytes")
FIELDS = {
    "source": choice("TensorFlow Datasets, or the authors' ag_news_csv/.", *SOURCES)
}
TFDS_NAME = "ag_news_subset"
NUM_EXAMPLES = {"train": 120_000, "test": 7_600}
COLUMNS = 'three columns, "class","title","description"'


def read(config, split: str) -> Iterator[Example | DataError]:
    """Yields the examples of "train" or "test", in the order of the source."""
    if config.source == "tfds":
        for row in tfds_source.rows(TFDS_NAME, split, config.dir):
            yield Example(row["title"] + b" " + row["description"], int(row["label"]))
    else:
        yield from _read_csv(_csv_path(config, split))


def identify(config, split: str):
    """A value that changes when the source does."""
    if config.source == "tfds":
        return tfds_source.identify(TFDS_NAME, config.dir)
    return files.identify(_csv_path(config, split))


def _csv_path(config, split) -> Path:
    root = files.data_path(config.dir, "AG News", "the folder ag_news_csv/")
    if (root / "ag_news_csv").is_dir():
        root = root / "ag_news_csv"
    return files.require_file(root / f"{split}.csv", f"CSV rows of {COLUMNS}")


def _read_csv(path):
    # A field may span lines, so the CSV reader pulls lines as it needs them. A row
    # with a line that is not UTF-8 is bad as a whole.
    number, bad_lines = 0, []

    def decoded_lines():
        nonlocal number
        for number, line in files.lines(path):  # noqa: B007
            if isinstance(line, DataError):
                bad_lines.append(line)
                line = ""
            yield line + "\n"

    reader = csv.reader(decoded_lines(), strict=True)
    while True:
        first = number + 1
        bad_lines.clear()
        try:
            row = next(reader, None)
        except csv.Error as error:
            row = bad_row(path, first, COLUMNS, str(error))
        if row is None:
            return
        if bad_lines:
            row = bad_lines[0]
        yield row if isinstance(row, DataError) else _parse(path, first, row)


def _parse(path, number, row):
    if len(row) != 3:
        return bad_row(path, number, COLUMNS, f"{len(row)} columns")
    label, title, description = row
    if label not in ("1", "2", "3", "4"):
        return bad_row(path, number, "a class from 1 to 4", f"{label!r}")
    return Example(f"{title} {description}".encode(), int(label) - 1)
