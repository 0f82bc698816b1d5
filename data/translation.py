"""Parallel text, tokenized: what training and evaluating a translation need of it."""

import logging

import numpy as np

from data import parallel_text, subword_vocabulary
from data.buckets import Buckets
from data.errors import DataError, RowErrors
from data.packed_pairs import PackedPairs
from data.pair_batching import EvaluationBatcher, StreamingBatcher
from data.pair_stream import PairStream
from data.subwords import SubwordTokenizer

CHUNK_SIZE = 1024

logger = logging.getLogger("transevolve")


def make_tokenizer(config) -> SubwordTokenizer:
    """The tokenizer that the `data` part of a config asks for.

    Raises:
      DataError: if its vocabulary, or the text to learn one from, cannot be had.
    """
    # Before a whole corpus is read for its vocabulary.
    parallel_text.require_files(config, "train", "validation")
    if config.vocab_file:
        return SubwordTokenizer(subword_vocabulary.given(config))
    return SubwordTokenizer(subword_vocabulary.trained(config))


class TranslationData:
    """One parallel text: everything that training and evaluation need of it.

    Args:
      config: the `data` part of a config.
      tokenizer: from `make_tokenizer`, or as saved by an earlier run.
    """

    def __init__(self, config, tokenizer: SubwordTokenizer):
        self.config = config
        self.tokenizer = tokenizer

    def train(self, batch_size: int, batch_unit: str = "sentences") -> StreamingBatcher:
        """Shuffled batches of the training text, which is read while they are used.

        Args:
          batch_size, batch_unit: see `Buckets`.
        """
        buckets = Buckets(self.config.bucket_lengths, batch_size, batch_unit)
        window = self.config.shuffle_window
        chunk_size = min(CHUNK_SIZE, window)
        return StreamingBatcher(
            self._name("train"),
            lambda: self._stream("train", chunk_size),
            buckets,
            window,
        )

    def evaluation(
        self, split: str, batch_size: int, batch_unit: str = "sentences"
    ) -> EvaluationBatcher:
        """Batches of all pairs of "validation" or "test", however long.

        A pair that is longer than the last bucket goes to one of a multiple of it.

        Raises:
          DataError: if the data cannot be had or read.
        """
        stream = self._stream(split, CHUNK_SIZE)
        chunks = list(stream.chunks())
        self._report(split, sum(map(len, chunks)), stream.skipped)
        pairs = PackedPairs.join(chunks)
        lengths = list(self.config.bucket_lengths)
        longest = lengths[-1]
        lengths += range(2 * longest, pairs.longer_sides.max() + longest, longest)
        buckets = Buckets(lengths, batch_size, batch_unit)
        # Long rows are fewer, so that they take no more memory than others.
        fewer = np.maximum(buckets.rows * longest**2 // buckets.lengths**2, 1)
        buckets.rows = np.where(buckets.lengths > longest, fewer, buckets.rows)
        return EvaluationBatcher(pairs, buckets)

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """The sentences of a split and their translations, as they were written.

        Raises:
          DataError: if the data cannot be had or read.
        """
        errors = RowErrors(self.config.on_error)
        pairs = list(errors.keep_good(parallel_text.read(self.config, split)))
        self._report(split, len(pairs), errors.skipped)
        sources = [pair.source.decode() for pair in pairs]
        return sources, [pair.target.decode() for pair in pairs]

    def _report(self, split, num_pairs, skipped):
        if not num_pairs:
            raise DataError(f"{self._name(split)}: expected pairs, found none")
        name = self._name(split)
        logger.info("%s: %d pairs, %d bad rows skipped", name, num_pairs, skipped)

    def _stream(self, split, chunk_size):
        return PairStream(
            lambda: parallel_text.read(self.config, split),
            self.tokenizer,
            self.config.on_error,
            chunk_size,
        )

    def _name(self, split):
        config = self.config
        return f"{config.source_language}-{config.target_language} {split}"
