"""Text as words, those that are frequent in the training text."""

from collections import Counter

import tensorflow as tf

from common.fields import integer
from common.progress import progress_bar
from data import DATASETS, files
from data.rows import DataError, GoodRows
from data.tokenizers.tokenizer import ListTokenizer, read_list, write_list

UNKNOWN, END = 1, 2
# Padding, and as language models' data sets write them.
RESERVED = ["", "<unk>", "<eos>"]
FILE_NAME = "words.txt"


class WordTokenizer(ListTokenizer):
    """Words parted by white space.

    Args:
      words: their number in the list is the id. `RESERVED` come first.
    """

    name = "words"
    file_name = FILE_NAME
    end = END
    FIELDS = {
        "vocab_size": integer(
            "How many words to keep, the most frequent; others are `<unk>`.",
            minimum=len(RESERVED) + 1,
            maximum=1_000_000,
        )
    }

    def __init__(self, words: list[str]):
        super().__init__(words)
        self._names = tf.constant(words)
        # Padding is no word, and <eos> in a text is none of ours.
        known = [UNKNOWN, *range(len(RESERVED), len(words))]
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant([words[i] for i in known]), tf.constant(known, tf.int32)
            ),
            default_value=UNKNOWN,
        )
        self.resources = (self._table,)

    @classmethod
    def make(cls, config):
        """Of the training text."""
        DATASETS[config.dataset].require_files(config, "train", "validation")
        return cls(counted(config))

    def __call__(self, texts):
        return self._table.lookup(tf.strings.split(texts))

    def decode(self, ids):
        """See `Tokenizer`; a space between two words."""
        names = tf.gather(self._names, ids)
        return tf.strings.reduce_join(names, axis=-1, separator=" ")


def counted(config) -> list[str]:
    """`RESERVED` and the most frequent words of the training text, `vocab_size` in all.

    Of words that are as frequent the first by their bytes are kept.

    Raises:
      DataError: if the text cannot be had or read.
    """
    module, size = DATASETS[config.dataset], config.vocab_size

    def write(folder):
        rows = GoodRows(module.read(config, "train"), config.on_error)
        counts = Counter()
        for line in progress_bar(rows, desc="counting words", unit=" lines"):
            counts.update(line.text.split())
        for name in RESERVED:
            counts.pop(name.encode(), None)
        if not counts:
            raise DataError("train: expected words, found none")
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        words = [word.decode() for word in ordered[: size - len(RESERVED)]]
        write_list([*RESERVED, *words], folder / FILE_NAME)

    identity = [module.identify(config, "train"), config.on_error, size]
    folder = files.cached_folder(config, "words", identity, write)
    return read_list(folder / FILE_NAME)
