"""BERT's word pieces."""

import hashlib
from itertools import chain
from pathlib import Path

import tensorflow as tf

from common.fields import changeable, choice, integer, optional, text
from data import DATASETS
from data.errors import DataError, RowErrors
from data.tokenizers import word_piece_vocabulary
from data.tokenizers.word_piece_vocabulary import BERT_SHA256, FILE_NAME


class WordPieceTokenizer:
    """BERT's uncased word pieces: lower case, no accents, greedy longest match.

    No [CLS] and [SEP] are added: the classifier averages over tokens.

    Args:
      vocabulary: word pieces; the line number is the id. [PAD] comes first.
    """

    name = "wordpiece"
    resources = ()
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

        self.vocabulary = vocabulary
        self.vocabulary_size = len(vocabulary)
        self.identity = ["wordpiece", *vocabulary]
        self._tokenizer = tensorflow_text.FastBertTokenizer(
            vocab=vocabulary,
            token_out_type=tf.int32,
            lower_case_nfd_strip_accents=True,
        )

    @classmethod
    def make(cls, config) -> "WordPieceTokenizer":
        """Of `vocab_file`, or as `vocab` says; see `data.tokenizers`."""
        if config.vocab_file or config.vocab == "bert":
            pieces = word_piece_vocabulary.given(config)
            try:
                return cls(pieces)
            except RuntimeError as error:
                found = " ".join(str(error).split())[:200]
                raise DataError(
                    f"{config.vocab_file}: expected word pieces that TensorFlow Text "
                    f"can use, found that it says: {found}"
                ) from None
        module = DATASETS[config.dataset]
        rows = RowErrors(config.on_error).keep_good(module.read(config, "train"))
        texts = chain.from_iterable(row.texts for row in rows)
        identity = module.identify(config, "train")
        return cls(word_piece_vocabulary.trained(config, texts, identity))

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Token ids, int32 [batch, (length)], of a string tensor [batch]."""
        return self._tokenizer.tokenize(texts)

    def names(self, ids) -> list[str]:
        """What to call ids, for people."""
        return [self.vocabulary[i] for i in ids]

    def save(self, directory: Path) -> None:
        """Writes the word pieces, one a line."""
        lines = "".join(piece + "\n" for piece in self.vocabulary)
        (directory / FILE_NAME).write_text(lines, encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> "WordPieceTokenizer":
        """See `data.tokenizers`."""
        return cls(_saved(directory))

    @classmethod
    def is_saved(cls, config, directory: Path) -> bool:
        """See `data.tokenizers`; what would be learned is not known before."""
        if config.vocab_file:
            return word_piece_vocabulary.given(config) == _saved(directory)
        # Each piece on a line, as published.
        content = (directory / FILE_NAME).read_bytes()
        is_published = hashlib.sha256(content).hexdigest() == BERT_SHA256
        return config.vocab == "bert" and is_published


def _saved(directory):
    # As bytes: a carriage return within a piece ends no line.
    lines = (directory / FILE_NAME).read_bytes().decode()
    return lines.split("\n")[:-1]
