"""Parallel text, tokenized: what training and evaluating a translation need of it."""

import logging

from common.fields import integer
from data import DATASETS
from data.buckets import Buckets
from data.errors import DataError, RowErrors
from data.pairs.batching import EvaluationBatcher, StreamingBatcher
from data.pairs.packed import PackedPairs
from data.pairs.stream import PairStream

CHUNK_SIZE = 1024

logger = logging.getLogger("transevolve")


class ParallelData:
    """One parallel text: everything that training and evaluation need of it.

    Args:
      config: the `data` part of a config.
      tokenizer: from `data.tokenizers`, or as saved by an earlier run.
    """

    FIELDS = {"shuffle_window": integer("How many pairs to shuffle together.")}

    def __init__(self, config, tokenizer):
        self.config = config
        self.module = DATASETS[config.dataset]
        self.tokenizer = tokenizer

    def train(self, batch_size: int, batch_unit: str = "sentences") -> StreamingBatcher:
        """Shuffled batches of the training text, which is read while they are used.

        Args:
          batch_size, batch_unit: see `Buckets`.
        """
        buckets = Buckets(self.config.bucket_lengths, batch_size, batch_unit)
        window = self.config.shuffle_window
        chunk_size = min(CHUNK_SIZE, window)
        earlier = getattr(self.module, "packed_fingerprint", None)
        return StreamingBatcher(
            self._name("train"),
            lambda: self._stream("train", chunk_size),
            buckets,
            window,
            self.module.fingerprint(self.config, "train"),
            earlier and (lambda: earlier(self.config, "train")),
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
        buckets = Buckets(self.config.bucket_lengths, batch_size, batch_unit)
        return EvaluationBatcher(pairs, buckets.extended(pairs.longer_sides.max()))

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """The sentences of a split and their translations, as they were written.

        Raises:
          DataError: if the data cannot be had or read.
        """
        errors = RowErrors(self.config.on_error)
        pairs = list(errors.keep_good(self.module.read(self.config, split)))
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
            lambda: self.module.read(self.config, split),
            self.tokenizer,
            self.config.on_error,
            chunk_size,
        )

    def _name(self, split):
        config = self.config
        return f"{config.source_language}-{config.target_language} {split}"
