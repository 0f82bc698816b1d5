"""A parallel text, tokenized: what training and evaluating a translation need of it."""

import logging

from common.fields import integer
from data import DATASETS
from data.batches import HeldBatches
from data.buckets import Buckets
from data.packed import PackedRows
from data.rows import DataError, GoodRows
from data.stream import StreamedBatches, TokenStream

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

    def training(
        self, batch_size: int, batch_unit: str = "sentences"
    ) -> StreamedBatches:
        """Shuffled batches of the training text, which is read while they are used.

        Args:
          batch_size, batch_unit: see `Buckets`.
        """
        config, window = self.config, self.config.shuffle_window
        chunk_size = min(CHUNK_SIZE, window)
        earlier = getattr(self.module, "packed_fingerprint", None)
        return StreamedBatches(
            self._name("train"),
            lambda: TokenStream(config, self.tokenizer, "train", chunk_size),
            Buckets(config.bucket_lengths, batch_size, batch_unit),
            window,
            self.module.fingerprint(config, "train"),
            earlier and (lambda: earlier(config, "train")),
        )

    def evaluation(
        self, split: str, batch_size: int, batch_unit: str = "sentences"
    ) -> HeldBatches:
        """Batches of all pairs of "validation" or "test", however long.

        A pair that is longer than the last bucket goes to one of a multiple of it.

        Raises:
          DataError: if the data cannot be had or read.
        """
        stream = TokenStream(self.config, self.tokenizer, split, CHUNK_SIZE)
        chunks = list(stream.chunks())
        self._report(split, sum(map(len, chunks)), stream.skipped)
        pairs = PackedRows.join(chunks)
        buckets = Buckets(self.config.bucket_lengths, batch_size, batch_unit)
        return HeldBatches(pairs, buckets.extended(pairs.longest.max()))

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """The sentences of a split and their translations, as they were written.

        Raises:
          DataError: if the data cannot be had or read.
        """
        rows = GoodRows(self.module.read(self.config, split), self.config.on_error)
        pairs = list(rows)
        self._report(split, len(pairs), rows.skipped)
        sources = [pair.source.decode() for pair in pairs]
        return sources, [pair.target.decode() for pair in pairs]

    def _report(self, split, num_pairs, skipped):
        if not num_pairs:
            raise DataError(f"{self._name(split)}: expected pairs, found none")
        name = self._name(split)
        logger.info("%s: %d pairs, %d bad rows skipped", name, num_pairs, skipped)

    def _name(self, split):
        config = self.config
        return f"{config.source_language}-{config.target_language} {split}"
