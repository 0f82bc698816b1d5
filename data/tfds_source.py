"""Examples from TensorFlow Datasets."""

from collections.abc import Iterator
from contextlib import contextmanager

from data.errors import DataError


def rows(name: str, split: str, directory: str | None) -> Iterator[dict]:
    """Yields the rows of a TFDS split, in order, as NumPy values.

    Args:
      name: of the TFDS builder, e.g. "imdb_reviews".
      split: as TFDS names it, e.g. "train".
      directory: TFDS's own data_dir; None for ~/tensorflow_datasets.

    Raises:
      DataError: if the data is neither there nor to be had.
    """
    import tensorflow_datasets as tfds

    with _explained(name):
        dataset = tfds.load(
            name, split=split, data_dir=directory or None, shuffle_files=False
        )
    return tfds.as_numpy(dataset)


def identify(name: str, directory: str | None):
    """A value that changes when the dataset's version or place does.

    Raises:
      DataError: as `rows`.
    """
    builder = _builder(name, directory)
    return builder.info.full_name, str(builder.data_dir)


def fingerprint(name: str, split: str, directory: str | None):
    """A value that changes when the dataset's version or size does.

    Raises:
      DataError: as `rows`.
    """
    return _builder(name, directory).info.full_name, count(name, split, directory)


def count(name: str, split: str, directory: str | None) -> int | None:
    """How many rows a split has, where its description says so.

    Raises:
      DataError: as `rows`.
    """
    splits = _builder(name, directory).info.splits
    return splits[split].num_examples if split in splits else None


def _builder(name, directory):
    import tensorflow_datasets as tfds

    with _explained(name):
        return tfds.builder(name, data_dir=directory or None)


@contextmanager
def _explained(name):
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"--config.data.source=tfds: expected TensorFlow Datasets to load {name}, "
            f"found {type(error).__name__}: {reason} (without network, give the "
            "authors' files: --config.data.source=files --config.data.dir=PATH)"
        ) from error
