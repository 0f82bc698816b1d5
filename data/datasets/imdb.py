"""IMDB: positive and negative film reviews (Maas et al. 2011)."""

import codecs
import hashlib
import json
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from common import checksums
from common.fields import choice
from data import files, tfds_source
from data.rows import DataError, Example, bad_row

KIND = "classification"
CLASS_NAMES = ("negative", "positive")
SPLITS = ("train", "test")
TOKENIZERS = ("wordpiece", "bytes")
FIELDS = {
    "source": choice("TensorFlow Datasets, or the authors' aclImdb/.", "tfds", "files")
}
TFDS_NAME = "imdb_reviews"
LAYOUT = "the folder aclImdb/ or its .tar.gz"
FOLDERS = ("neg", "pos")
NUM_EXAMPLES = {"train": 25_000, "test": 25_000}


def read(config, split: str) -> Iterator[Example | DataError]:
    """Yields the examples of "train" or "test", in an order that files do not change.

    Files are read straight from the archive, or from the unpacked folder.
    """
    if config.source == "tfds":
        for row in tfds_source.rows(TFDS_NAME, split, config.dir):
            yield Example(row["text"], int(row["label"]))
        return
    root = _root(config)
    if root.is_file():
        reviews = _from_archive(root, split)
    else:
        reviews = [
            (path, label, path.read_bytes()) for path, label in _paths(root, split)
        ]
    labels = {label for _, label, _ in reviews}
    missing = [name for label, name in enumerate(FOLDERS) if label not in labels]
    if missing:
        places = " and ".join(f"aclImdb/{split}/{name}/*.txt" for name in missing)
        raise DataError(f"{root}: expected reviews in {places}, found none")
    for path, label, raw in reviews:
        yield _check(path, label, raw)


def identify(config, split: str):
    """A value that changes when the source does."""
    if config.source == "tfds":
        return tfds_source.identify(TFDS_NAME, config.dir)
    root = _root(config)
    if root.is_file():
        return checksums.sha256(root), split
    reviews = _paths(root, split)
    sums = [(label, path.name, checksums.sha256(path)) for path, label in reviews]
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


def _root(config) -> Path:
    root = files.data_path(config.dir, "IMDB", LAYOUT)
    if root.is_dir() and (root / "aclImdb").is_dir():
        root = root / "aclImdb"
    if root.is_dir():
        for folder in (root / split / name for split in SPLITS for name in FOLDERS):
            if not folder.is_dir():
                raise DataError(f"{folder}: expected {LAYOUT}, found no such folder")
        return root
    return files.require_file(root, LAYOUT)


def _paths(root, split):
    """Yields the file and the label of each review, in order."""
    for label, folder in enumerate(FOLDERS):
        for path in sorted((root / split / folder).glob("*.txt")):
            if not path.is_file():  # a named pipe would never end
                raise DataError(f"{path}: expected a file, found something else")
            yield path, label


def _from_archive(archive, split):
    """The name, the label and the content of each review, in order."""
    prefixes = {f"aclImdb/{split}/{name}/": i for i, name in enumerate(FOLDERS)}
    reviews = []
    try:
        with archive.open("rb") as raw, tarfile.open(fileobj=raw, mode="r:*") as tar:
            for member in tar:
                path = f"{archive}:{member.name}"
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    raise _bad_member(path, "a name below aclImdb/")
                folder = member.name[: member.name.rfind("/") + 1]
                label = prefixes.get(folder.removeprefix("./"))
                if label is not None and member.name.endswith(".txt"):
                    if not member.isreg():
                        raise _bad_member(path, "a file")
                    reviews.append((path, label, tar.extractfile(member).read()))
            _read_to_the_end(tar.fileobj)
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{archive}: expected {LAYOUT}, found {reason}") from None
    return sorted(reviews, key=lambda review: (review[1], review[0]))


def _bad_member(path, expected):
    return DataError(f"{path}: expected {expected} in the archive, found another entry")


def _read_to_the_end(file):
    """Two blocks of zeros end an archive, of which `tarfile` has read the first; what
    packed it checks its sum where it is read to its end."""
    if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise EOFError("an archive that was cut")
    while file.read(2**20):
        pass


def _check(path, label, raw):
    if not raw.strip():
        return bad_row(path, 1, "a review", "an empty file")
    for number, line in enumerate(raw.split(b"\n"), start=1):
        text = files.decode_line(path, number, line)
        if isinstance(text, DataError):
            return text
    return Example(raw.removeprefix(codecs.BOM_UTF8), label)
