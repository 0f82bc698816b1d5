"""Text to token ids, inside the TensorFlow graph. Id 0 is padding everywhere."""

import json
from pathlib import Path

import tensorflow as tf

from data.errors import DataError
from data.subwords import SubwordTokenizer


class ByteTokenizer:
    """Every byte b becomes the id b + 1."""

    vocabulary_size = 257
    identity = "bytes"

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Token ids, int32 [batch, (length)], of a string tensor [batch]."""
        flat = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
        ids = tf.cast(flat, tf.int32) + 1
        return tf.RaggedTensor.from_row_lengths(ids, tf.strings.length(texts))


class SymbolTokenizer:
    """Symbols parted by spaces; the i-th of `symbols` becomes the id i + 1."""

    def __init__(self, symbols: tuple[str, ...]):
        self.symbols = tuple(symbols)
        self.vocabulary_size = len(symbols) + 1
        self.identity = ["symbols", *symbols]
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(symbols), tf.range(1, len(symbols) + 1)
            ),
            default_value=0,
        )

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Token ids, int32 [batch, (length)], of a string tensor [batch]."""
        return self._table.lookup(tf.strings.split(texts))


class WordPieceTokenizer:
    """BERT's uncased word pieces: lower case, no accents, greedy longest match.

    No [CLS] and [SEP] are added: the classifier averages over tokens.

    Args:
      vocabulary: word pieces; the line number is the id. [PAD] comes first.
    """

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

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Token ids, int32 [batch, (length)], of a string tensor [batch]."""
        return self._tokenizer.tokenize(texts)


def save(tokenizer, directory: Path) -> None:
    """Writes a tokenizer to a folder from which `load` makes it again."""
    directory.mkdir(parents=True, exist_ok=True)
    description = {"kind": type(tokenizer).__name__}
    if isinstance(tokenizer, WordPieceTokenizer):
        text = "".join(piece + "\n" for piece in tokenizer.vocabulary)
        (directory / "vocab.txt").write_text(text, encoding="utf-8")
    elif isinstance(tokenizer, SubwordTokenizer):
        (directory / "subwords.model").write_bytes(tokenizer.model)
    elif isinstance(tokenizer, SymbolTokenizer):
        description["symbols"] = tokenizer.symbols
    (directory / "tokenizer.json").write_text(json.dumps(description) + "\n")


def load(directory: Path):
    """The tokenizer that `save` wrote to the folder.

    Raises:
      DataError: if none is there.
    """
    path = directory / "tokenizer.json"
    if not path.exists():
        raise DataError(f"{path}: expected a saved tokenizer, found no such file")
    description = json.loads(path.read_text())
    if description["kind"] == "WordPieceTokenizer":
        text = (directory / "vocab.txt").read_text(encoding="utf-8")
        return WordPieceTokenizer(text.split("\n")[:-1])
    if description["kind"] == "SubwordTokenizer":
        return SubwordTokenizer((directory / "subwords.model").read_bytes())
    if description["kind"] == "SymbolTokenizer":
        return SymbolTokenizer(tuple(description["symbols"]))
    return ByteTokenizer()
