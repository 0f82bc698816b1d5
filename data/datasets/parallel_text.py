"""Parallel text: a sentence and its translation a row, from TFDS or from two files."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from common import checksums
from common.fields import choice, fail, optional, text
from data import files, tfds_source
from data.rows import DataError, Pair, bad_row

KIND = "parallel_text"
SPLITS = ("train", "validation", "test")
TOKENIZERS = ("subwords",)
FIELDS = {
    "source": choice(
        "TensorFlow Datasets, or NAME.LANGUAGE[.gz] files.", "tfds", "files"
    ),
    "tfds_name": optional(text("The translation dataset of TFDS.")),
    "source_language": text("What to translate from, as files and TFDS call it."),
    "target_language": text("What to translate to, as files and TFDS call it."),
    "train_name": text("NAME of the training files."),
    "validation_name": text("NAME of the validation files."),
    "test_name": text("NAME of the test files."),
}
# What TFDS's splits of a dataset are.
TFDS_TEST_SETS = {
    "wmt14_translate": {"validation": "newstest2013", "test": "newstest2014"}
}


def check(config) -> None:
    """Raises `UserError` if the languages are one, or no subword fits a sentence."""
    if config.max_length < 2:
        expected = "at least 2: a subword and the end"
        fail("data.max_length", expected, config.max_length)
    if config.source_language == config.target_language:
        expected = "another language than data.source_language"
        fail("data.target_language", expected, config.target_language)


def read(config, split: str) -> Iterator[Pair | DataError]:
    """Yields the pairs of "train", "validation" or "test", in order, as they are read.

    Lines of one file that the other has no more lines for are bad rows, too.

    Raises:
      DataError: if the data cannot be had, or a file is damaged.
    """
    if config.source == "tfds":
        yield from _read_tfds(config, split)
    else:
        yield from _read_files(*_paths(config, split))


def identify(config, split: str):
    """A value that changes when the source does."""
    if config.source == "tfds":
        return tfds_source.identify(_tfds_name(config), config.dir)
    return [files.identify(path) for path in _paths(config, split)]


def fingerprint(config, split: str):
    """A value that changes when the text does, but not when it is moved or packed."""
    if config.source == "tfds":
        return tfds_source.fingerprint(_tfds_name(config), split, config.dir)
    return identify(config, split)


def packed_fingerprint(config, split: str):
    """The `fingerprint` that earlier versions kept: of files as they are packed."""
    if config.source == "tfds":
        return fingerprint(config, split)
    return [checksums.sha256(path) for path in _paths(config, split)]


def test_set(config, split: str) -> str:
    """What "validation" or "test" is called: as its files, or in TFDS."""
    if config.source == "files":
        return config[f"{split}_name"]
    dataset = config.tfds_name.split("/")[0]
    known = TFDS_TEST_SETS.get(dataset, {})
    return known.get(split, f"{config.tfds_name} {split}")


def require_files(config, *splits: str) -> None:
    """Raises `DataError` if a file of a split is missing; TFDS says so by itself."""
    if config.source == "files":
        for split in splits:
            _paths(config, split)


def _paths(config, split) -> list[Path]:
    name = config[f"{split}_name"]
    languages = (config.source_language, config.target_language)
    layout = " and ".join(f"{name}.{language}[.gz]" for language in languages)
    root = files.data_path(config.dir, "parallel text", f"the folder of {layout}")
    return [
        files.find(root, f"{name}.{language}", "a sentence a line")
        for language in languages
    ]


def _read_files(*paths):
    sides = [files.raw_lines(path) for path in paths]
    for source, target in zip_longest(*sides):
        number, _ = source or target
        if source and target:
            yield _check(paths, number, Pair(source[1], target[1]))
        else:
            longer, shorter = paths if source else paths[::-1]
            end = f"its end after {number - 1:,} lines"
            yield bad_row(longer, number, f"a line in {shorter}, too", end)


def _check(places, number, pair):
    for place, sentence in zip(places, pair, strict=True):
        if not sentence.strip():
            return bad_row(place, number, "a sentence", "an empty line")
        if not sentence.isascii():
            decoded = files.decode_line(place, number, sentence)
            if isinstance(decoded, DataError):
                return decoded
    return pair


def _tfds_name(config):
    if not config.tfds_name:
        raise DataError(
            "--config.data.tfds_name: expected the name of a TFDS translation dataset, "
            "found none (for the authors' files: --config.data.source=files)"
        )
    return config.tfds_name


def _read_tfds(config, split):
    name = _tfds_name(config)
    languages = (config.source_language, config.target_language)
    places = [f"{name} {split} {language}" for language in languages]
    rows = tfds_source.rows(name, split, config.dir)
    for number, row in enumerate(rows, start=1):
        if not row.keys() >= set(languages):
            raise DataError(
                f"--config.data.tfds_name={name}: expected the languages "
                f"{' and '.join(languages)}, found {' and '.join(row)}"
            )
        yield _check(places, number, Pair(*(row[language] for language in languages)))
