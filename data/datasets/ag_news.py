"""AG News: four topics of news, title and description (Zhang et al. 2015)."""

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from common.fields import choice
from data import files, tfds_source
from data.rows import DataError, Example, bad_row

KIND = "classification"
CLASS_NAMES = ("World", "Sports", "Business", "Sci/Tech")
SPLITS = ("train", "test")
TOKENIZERS = ("wordpiece", "bytes")
FIELDS = {
    "source": choice(
        "TensorFlow Datasets, or the authors' ag_news_csv/.", "tfds", "files"
    )
}
TFDS_NAME = "ag_news_subset"
NUM_EXAMPLES = {"train": 120_000, "test": 7_600}
COLUMNS = 'three columns, "class","title","description"'
# A row that has more of them has a quote that was left open.
MOST_LINES = 20


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
    """Yields the rows; a quoted field may have several lines.

    After a bad row the next one begins on the line after its first: a quote that was
    left open takes in good rows, and they are not lost.
    """
    lines, again = files.lines(path), deque()
    while True:
        taken = []
        try:
            text = _take(lines, again, taken)
            columns, error = next(csv.reader(text, strict=True), None), None
        except csv.Error as failure:
            columns, error = None, failure
        if not taken:
            return
        row = _parse(path, taken, columns, error)
        if isinstance(row, DataError):
            again.extendleft(reversed(taken[1:]))
        yield row


def _take(lines, again, taken):
    """Yields lines for a row: those to be read again, then new ones."""
    while len(taken) < MOST_LINES:
        line = again.popleft() if again else next(lines, None)
        if line is None:
            return
        taken.append(line)
        yield "\n" if isinstance(line[1], DataError) else line[1] + "\n"


def _parse(path, taken, columns, error):
    """The example of a row, from its lines and columns, or what is wrong with it."""
    first = taken[0][0]
    for _, line in taken:
        if isinstance(line, DataError):
            return line
    if error and len(taken) > 1:
        error = f"a quote that opens here and closes no field ({error})"
    if error:
        return bad_row(path, first, COLUMNS, error)
    if len(columns) != 3:
        return bad_row(path, first, COLUMNS, f"{len(columns)} columns")
    label, title, description = columns
    if label not in ("1", "2", "3", "4"):
        return bad_row(path, first, "a class from 1 to 4", f"{label!r:.30}")
    return Example(f"{title} {description}".encode(), int(label) - 1)
