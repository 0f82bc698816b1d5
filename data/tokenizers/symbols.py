"""Text as symbols, all of which are known beforehand."""

from collections.abc import Sequence

import tensorflow as tf

from data import DATASETS
from data.tokenizers.tokenizer import Tokenizer, read_list, write_list

FILE_NAME = "symbols.txt"


class SymbolTokenizer(Tokenizer):
    """Symbols parted by spaces; the i-th of `symbols` becomes the id i + 1.

    Args:
      symbols: texts without spaces.
    """

    name = "symbols"

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
    def make(cls, config):
        """Of the dataset's `SYMBOLS`."""
        return cls(DATASETS[config.dataset].SYMBOLS)

    def __call__(self, texts):
        return self._table.lookup(tf.strings.split(texts))

    def names(self, ids):
        return [self.symbols[i - 1] for i in ids]

    def save(self, directory):
        write_list(self.symbols, directory / FILE_NAME)

    @classmethod
    def load(cls, directory):
        return cls(read_list(directory / FILE_NAME))
