"""Examples from TensorFlow Datasets."""

import io
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from types import SimpleNamespace

from common import downloads
from common.progress import progress_bar
from data.rows import DataError

RETRIES = 4  # within 3 s; of TFDS's ten the last ones wait for minutes
INSTEAD = (
    ". Instead you can give a folder where TFDS has prepared it "
    "(--config.data.dir=PATH or TFDS_DATA_DIR=PATH), or the authors' files "
    "(--config.data.source=files --config.data.dir=PATH)"
)

logger = logging.getLogger("transevolve")


def rows(name: str, split: str, directory: str | None) -> Iterator[dict]:
    """Yields the rows of a TFDS split, in order, as NumPy values.

    Data that is not prepared is downloaded and prepared first.

    Args:
      name: of the TFDS builder, e.g. "imdb_reviews".
      split: as TFDS names it, e.g. "train".
      directory: TFDS's own data_dir; None for TFDS_DATA_DIR, or else
        ~/tensorflow_datasets.

    Raises:
      DataError: if the data is neither there nor can be downloaded.
    """
    builder = _prepared(name, directory)
    with _explained(name):
        import tensorflow_datasets as tfds

        dataset = builder.as_dataset(split=split, shuffle_files=False)
        return tfds.as_numpy(dataset)


def identify(name: str, directory: str | None):
    """A value that changes when the dataset's version or place does.

    Raises:
      DataError: if TFDS has no such dataset.
    """
    builder = _builder(name, directory)
    return builder.info.full_name, str(builder.data_dir)


def fingerprint(name: str, split: str, directory: str | None):
    """A value that changes when the dataset's version or size does.

    Raises:
      DataError: as `rows`.
    """
    info = _prepared(name, directory).info
    count = info.splits[split].num_examples if split in info.splits else None
    return info.full_name, count


def _builder(name, directory):
    with _explained(name):
        import tensorflow_datasets as tfds

        return tfds.builder(name, data_dir=directory or None)


def _prepared(name, directory):
    builder = _builder(name, directory)
    if not builder.is_prepared():
        with _explained(name, INSTEAD), _our_downloads(name, builder):
            builder.download_and_prepare()
        logger.info("%s: prepared in %s", name, builder.data_dir)
    return builder


@contextmanager
def _our_downloads(name, builder):
    """TFDS downloads in our way meanwhile: announced, in time, with bars as ours.

    It has no options for these, so its private parts are replaced. Its version is
    pinned, and tests run its builders.
    """
    from tensorflow_datasets.core.download import checksums, downloader
    from tensorflow_datasets.core.utils import temporary_assignment, tqdm_utils

    tfds_open = downloader._open_url
    sizes = {**checksums.get_all_url_infos(), **(builder.url_infos or {})}
    ended = threading.Event()

    def continued(blocks):
        # Its thread would go on after an interruption, and the process wait for it.
        for block in blocks:
            if ended.is_set():
                raise InterruptedError
            yield block

    @contextmanager
    def open_url(url, verify):
        size = f" ({sizes[url].size})" if url in sizes else ""
        folder = builder.data_dir_root / "downloads"
        logger.info("%s: downloading %s%s to %s", name, url, size, folder)
        with downloads.opened(
            url, lambda url, timeout: tfds_open(url, verify=verify, timeout=timeout)
        ) as (response, blocks):
            yield response, continued(blocks)

    with (
        temporary_assignment(downloader, "_open_url", open_url),
        temporary_assignment(downloader, "MAX_RETRIES", RETRIES),
        # Its bars write to a log for each mebibyte or each second.
        temporary_assignment(tqdm_utils, "_async_tqdm", tqdm_utils.EmptyTqdm),
        temporary_assignment(
            tqdm_utils, "tqdm_lib", SimpleNamespace(tqdm=progress_bar)
        ),
        redirect_stdout(io.StringIO()),  # where TFDS says that it knows no sizes
    ):
        try:
            yield
        finally:
            ended.set()


@contextmanager
def _explained(name, instead=""):
    try:
        yield
    except ImportError as error:
        raise DataError(
            "--config.data.source=tfds: expected the packages that TensorFlow Datasets "
            f"needs, found {_line(error)}. Install those of requirements.txt"
        ) from error
    except Exception as error:
        raise DataError(
            f"--config.data.source=tfds: expected TensorFlow Datasets to load {name}, "
            f"found {type(error).__name__}: {_line(error)}{instead}"
        ) from error


def _line(error):
    return " ".join(str(error).split())[:600].rstrip(".")
