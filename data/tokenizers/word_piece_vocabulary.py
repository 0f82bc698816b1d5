"""Where the word pieces come from: a file, the published BERT list, or the corpus."""

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from common.progress import progress_bar
from data import files
from data.errors import DataError, bad_row

BERT_URL = "https://huggingface.co/google-bert/bert-base-uncased/resolve/main/vocab.txt"
BERT_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
RESERVED = ["[PAD]", "[UNK]"]

logger = logging.getLogger("transevolve")


def given(config) -> list[str]:
    """The word pieces of `vocab_file`, or else the published BERT uncased list.

    The list is downloaded once; its SHA-256 is checked every time.

    Raises:
      DataError: if the file is no vocabulary, or the download fails.
    """
    if config.vocab_file:
        return read(Path(config.vocab_file).expanduser())
    return read(_download(Path(config.cache_dir).expanduser()))


def trained(config, texts: Iterable[bytes], corpus_identity) -> list[str]:
    """`vocab_size` word pieces learned from texts, once per corpus.

    Args:
      config: `vocab_size`, and `cache_dir` to keep them in.
      texts: the training texts.
      corpus_identity: changes when the texts do.
    """
    cache = Path(config.cache_dir).expanduser()
    key = json.dumps([corpus_identity, config.vocab_size])
    name = f"vocab-{hashlib.sha256(key.encode()).hexdigest()[:16]}.txt"
    if not (cache / name).exists():
        _write(cache / name, _train(texts, config.vocab_size))
    return read(cache / name)


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


def _download(folder: Path) -> Path:
    import keras

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bert_base_uncased_vocab.txt"
    try:
        found = keras.utils.get_file(
            path.name,
            BERT_URL,
            file_hash=BERT_SHA256,
            cache_dir=folder,
            cache_subdir="",
        )
    except Exception as error:
        path.unlink(missing_ok=True)
        reason = " ".join(str(error).split())[:160]
        raise DataError(
            f"--config.data.vocab=bert: expected {BERT_URL} with SHA-256 "
            f"{BERT_SHA256[:8]}…, found {type(error).__name__}: {reason} (without "
            "network: --config.data.vocab_file=FILE or --config.data.vocab=train)"
        ) from error
    return Path(found)


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


def _write(path, pieces):
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    unfinished.write_text("".join(piece + "\n" for piece in pieces), encoding="utf-8")
    os.replace(unfinished, path)
