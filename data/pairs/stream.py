"""Parallel text as token ids, read anew each time: no corpus is too large."""

import os
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import tensorflow as tf

from data.dataset_options import untuned
from data.errors import RowErrors
from data.pairs.packed import PackedPairs


class PairStream:
    """The pairs of a split, tokenized in chunks while they are read.

    Args:
      read: function without arguments that yields `Pair`s, and a
        `DataError` for a bad row.
      tokenizer: a `SubwordTokenizer`.
      on_error: "fail" or "skip", what to do about bad rows.
      chunk_size: pairs of a chunk.

    Attributes:
      skipped: bad rows left out by the latest call of `chunks`.
    """

    def __init__(
        self,
        read: Callable[[], Iterator],
        tokenizer,
        on_error: str,
        chunk_size: int = 1024,
    ):
        self._read = read
        self._on_error = on_error
        self._chunk_size = chunk_size
        self._errors = RowErrors(on_error)
        self._failure = None
        dtype = tf.uint16 if tokenizer.vocabulary_size <= 2**16 else tf.uint32

        def tokenize(texts):
            ids = tokenizer(texts)
            lengths = tf.cast(ids.row_lengths(), tf.int32)
            return tf.cast(ids.flat_values, dtype), tf.reshape(lengths, [-1, 2])

        texts = tf.data.Dataset.from_generator(
            self._texts, output_signature=tf.TensorSpec([None], tf.string)
        )
        dataset = texts.map(tokenize, num_parallel_calls=tf.data.AUTOTUNE)
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        self._dataset = dataset.with_options(untuned(2 + os.cpu_count()))

    @property
    def skipped(self) -> int:
        return self._errors.skipped

    def chunks(self) -> Iterator[PackedPairs]:
        """Yields all pairs, from the first; to be read to the end before a new start.

        Raises:
          DataError: for bad input.
        """
        self._errors = RowErrors(self._on_error)
        self._failure = None
        for tokens, lengths in self._dataset.as_numpy_iterator():
            yield PackedPairs(tokens, lengths)
        if self._failure is not None:
            raise self._failure

    def _texts(self):
        # An exception that crosses TensorFlow comes out as another with a long text.
        try:
            pairs = self._errors.keep_good(self._read())
            while chunk := list(islice(pairs, self._chunk_size)):
                yield np.array([text for pair in chunk for text in pair], object)
        except Exception as error:
            self._failure = error
