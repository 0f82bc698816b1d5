"""BERT's word pieces, and where they come from: a file, the published list, or the
corpus."""

import hashlib
import logging
from pathlib import Path

import tensorflow as tf

from common.fields import changeable, choice, integer, optional, text
from common.paths import make_path
from common.progress import progress_bar
from data import DATASETS, files
from data.rows import DataError, GoodRows, bad_row
from data.tokenizers.tokenizer import ListTokenizer, read_list, write_list

BERT_URL = "https://huggingface.co/google-bert/bert-base-uncased/resolve/main/vocab.txt"
BERT_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
RESERVED = ["[PAD]", "[UNK]"]
FILE_NAME = "vocab.txt"

logger = logging.getLogger("transevolve")


class WordPieceTokenizer(ListTokenizer):
    """BERT's uncased word pieces: lower case, no accents, greedy longest match.

    No [CLS] and [SEP] are added: the classifier averages over tokens.

    Args:
      vocabulary: word pieces; the line number is the id. [PAD] comes first.
    """

    name = "wordpiece"
    file_name = FILE_NAME
    modules = ("tensorflow_text",)
    FIELDS = {
        "vocab": choice(
            "The published BERT uncased list, or word pieces learned from the training "
            "texts.",
            "bert",
            "train",
        ),
        "vocab_size": integer("How many word pieces to learn.", maximum=1_000_000),
        "vocab_file": changeable(
            optional(
                text("A file of word pieces, one a line, to use instead of vocab.")
            )
        ),
    }

    def __init__(self, vocabulary: list[str]):
        import tensorflow_text

        super().__init__(vocabulary)
        self._tokenizer = tensorflow_text.FastBertTokenizer(
            vocab=vocabulary,
            token_out_type=tf.int32,
            lower_case_nfd_strip_accents=True,
        )

    @classmethod
    def make(cls, config):
        """Of `vocab_file`, or as `vocab` says."""
        if config.vocab_file or config.vocab == "bert":
            pieces = given(config)
            try:
                return cls(pieces)
            except RuntimeError as error:
                reason = " ".join(str(error).split())[:200]
                raise DataError(
                    f"{config.vocab_file}: expected word pieces that TensorFlow Text "
                    f"can use, found that it says: {reason}"
                ) from None
        return cls(trained(config))

    def __call__(self, texts):
        return self._tokenizer.tokenize(texts)

    @classmethod
    def is_saved(cls, config, directory):
        if config.vocab_file:
            return given(config) == read_list(directory / FILE_NAME)
        # Each piece on a line, as published.
        content = (directory / FILE_NAME).read_bytes()
        is_published = hashlib.sha256(content).hexdigest() == BERT_SHA256
        return config.vocab == "bert" and is_published


def given(config) -> list[str]:
    """The word pieces of `vocab_file`, or else the published BERT uncased list.

    The list is downloaded once; its SHA-256 is checked every time.

    Raises:
      DataError: if the file is no vocabulary, or the download fails.
    """
    if config.vocab_file:
        return read(make_path(config.vocab_file, "--config.data.vocab_file"))
    folder = files.downloaded(
        config.cache_dir,
        "bert-base-uncased",
        FILE_NAME,
        BERT_URL,
        BERT_SHA256,
        "--config.data.vocab=bert: expected to download the published word pieces",
        "give the file (--config.data.vocab_file=FILE), or learn word pieces "
        "(--config.data.vocab=train)",
    )
    return read(folder / FILE_NAME)


def trained(config) -> list[str]:
    """`vocab_size` word pieces learned from the texts of the training split, once.

    Raises:
      DataError: if the texts cannot be had or read.
    """
    module, size = DATASETS[config.dataset], config.vocab_size

    def write(folder):
        from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset

        rows = GoodRows(module.read(config, "train"), config.on_error)
        texts = (text for row in rows for text in row.texts)
        texts = progress_bar(texts, desc="reading for the vocabulary", unit=" texts")
        texts = list(texts)
        logger.info(
            "learning %d word pieces from %d texts", config.vocab_size, len(texts)
        )
        pieces = bert_vocab_from_dataset.bert_vocab_from_dataset(
            tf.data.Dataset.from_tensor_slices(texts).batch(1000),
            size,
            RESERVED,
            bert_tokenizer_params={"lower_case": True},
        )
        logger.info("learned %d word pieces", len(pieces))
        write_list(pieces, folder / FILE_NAME)

    identity = [module.identify(config, "train"), config.on_error, size]
    return read(files.cached_folder(config, "word-pieces", identity, write) / FILE_NAME)


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
