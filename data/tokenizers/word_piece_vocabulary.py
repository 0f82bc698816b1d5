"""Where the word pieces come from: a file, the published BERT list, or the corpus."""

import hashlib
import json
import logging
import time
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from common.cache import cached
from common.downloads import DownloadError, download
from common.paths import make_path
from common.progress import progress_bar
from data import files
from data.errors import DataError, bad_row

BERT_URL = "https://huggingface.co/google-bert/bert-base-uncased/resolve/main/vocab.txt"
BERT_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
RESERVED = ["[PAD]", "[UNK]"]
FILE_NAME = "vocab.txt"

logger = logging.getLogger("transevolve")


def given(config) -> list[str]:
    """The word pieces of `vocab_file`, or else the published BERT uncased list.

    The list is downloaded once; its SHA-256 is checked every time.

    Raises:
      DataError: if the file is no vocabulary, or the download fails.
    """
    if config.vocab_file:
        return read(make_path(config.vocab_file, "--config.data.vocab_file"))
    return read(_download(config.cache_dir))


def trained(config, texts: Iterable[bytes], corpus_identity) -> list[str]:
    """`vocab_size` word pieces learned from texts, once per corpus.

    Args:
      config: `vocab_size`, and `cache_dir` to keep them in.
      texts: the training texts.
      corpus_identity: changes when the texts do.
    """

    def write(folder):
        pieces = _train(texts, config.vocab_size)
        lines = "".join(piece + "\n" for piece in pieces)
        (folder / FILE_NAME).write_text(lines, encoding="utf-8")

    key = json.dumps([corpus_identity, config.vocab_size])
    name = f"word-pieces-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    folder = make_path(config.cache_dir, "--config.data.cache_dir") / name
    return read(cached(folder, write) / FILE_NAME)


def read(path: Path) -> list[str]:
    """Reads a vocabulary, one piece a line.

    Raises:
      DataError: if the file is missing or empty, is not UTF-8, repeats a piece, does
        not start with [PAD] or lacks [UNK].
    """
    expected = "word pieces, one a line, [PAD] first"
    files.require_file(path, expected)
    pieces = {}
    for number, piece in files.lines(path):
        if isinstance(piece, DataError):
            raise piece
        if piece in pieces:
            raise bad_row(path, number, "a new piece", f"{piece!r} again")
        if number == 1 and piece != "[PAD]":
            raise bad_row(path, number, expected, f"{piece!r:.30}")
        pieces[piece] = number
    if "[UNK]" not in pieces:
        raise bad_row(path, len(pieces), "the piece [UNK] somewhere", "none")
    return list(pieces)


def _download(cache_dir) -> Path:
    folder = make_path(cache_dir, "--config.data.cache_dir") / "bert-base-uncased"

    def write(unfinished):
        logger.info("downloading %s to %s", BERT_URL, folder)
        try:
            download(BERT_URL, unfinished / FILE_NAME, BERT_SHA256)
        except DownloadError as error:
            raise DataError(
                "--config.data.vocab=bert: expected to download the published word "
                f"pieces, of SHA-256 {BERT_SHA256[:8]}…, found {error}. Instead you "
                "can give the file (--config.data.vocab_file=FILE), or learn word "
                "pieces (--config.data.vocab=train)"
            ) from error

    return cached(folder, write) / FILE_NAME


def _train(texts, vocab_size):
    from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset

    texts = list(progress_bar(texts, desc="reading for the vocabulary", unit=" texts"))
    logger.info("learning %d word pieces from %d texts", vocab_size, len(texts))
    start = time.monotonic()
    pieces = bert_vocab_from_dataset.bert_vocab_from_dataset(
        tf.data.Dataset.from_tensor_slices(texts).batch(1000),
        vocab_size,
        RESERVED,
        bert_tokenizer_params={"lower_case": True},
    )
    seconds = time.monotonic() - start
    logger.info("learned %d word pieces in %.0f s", len(pieces), seconds)
    return pieces
