"""Text as symbols, all of which are known beforehand."""

from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from data import DATASETS

FILE_NAME = "symbols.txt"


class SymbolTokenizer:
    """Symbols parted by spaces; the i-th of `symbols` becomes the id i + 1.

    Args:
      symbols: texts without spaces.
    """

    name = "symbols"
    modules = ()
    FIELDS = {}

    def __init__(self, symbols: Sequence[str]):
        self.symbols = tuple(symbols)
        self.vocabulary_size = len(symbols) + 1
        self.identity = ["symbols", *symbols]
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(symbols), tf.range(1, len(symbols) + 1)
            ),
            default_value=0,
        )
        self.resources = (self._table,)

    @classmethod
    def make(cls, config) -> "SymbolTokenizer":
        """Of the dataset's `SYMBOLS`; see `data.tokenizers`."""
        return cls(DATASETS[config.dataset].SYMBOLS)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Token ids, int32 [batch, (length)], of a string tensor [batch]."""
        return self._table.lookup(tf.strings.split(texts))

    def names(self, ids) -> list[str]:
        """What to call ids, padding apart, for people."""
        return [self.symbols[i - 1] for i in ids]

    def save(self, directory: Path) -> None:
        """Writes the symbols, one a line."""
        lines = "".join(symbol + "\n" for symbol in self.symbols)
        (directory / FILE_NAME).write_text(lines, encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> "SymbolTokenizer":
        """See `data.tokenizers`."""
        return cls((directory / FILE_NAME).read_text(encoding="utf-8").split())
