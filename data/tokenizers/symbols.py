"""Text as symbols, all of which are known beforehand."""

from collections.abc import Sequence

import tensorflow as tf

from data import DATASETS
from data.tokenizers.tokenizer import ListTokenizer


class SymbolTokenizer(ListTokenizer):
    """Symbols parted by spaces; the i-th of `symbols` becomes the id i + 1.

    Args:
      symbols: texts without spaces.
    """

    name = "symbols"
    file_name = "symbols.txt"
    first_id = 1

    def __init__(self, symbols: Sequence[str]):
        super().__init__(symbols)
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
