"""A classification dataset: its splits, tokenized."""

import logging

import numpy as np

from common.fields import integer
from data import DATASETS
from data.batches import HeldBatches
from data.buckets import Buckets
from data.packed import PackedRows
from data.stream import tokenized
from data.validation_split import split_off

logger = logging.getLogger("transevolve")


class ClassificationData:
    """One dataset, tokenized: everything that training and evaluation need of it.

    Args:
      config: the `data` part of a config.
      seed: of the validation split, where it is cut from the training split.
      tokenizer: from `data.tokenizers`, or as saved by an earlier run.
    """

    FIELDS = {
        "validation_examples": integer(
            "How many training examples to hold out for validation, of a dataset "
            "without a validation split."
        )
    }

    def __init__(self, config, seed: int, tokenizer):
        self.config = config
        self.seed = seed
        self.module = DATASETS[config.dataset]
        self.class_names = self.module.CLASS_NAMES
        self.tokenizer = tokenizer
        self._splits = {}

    def batcher(self, split: str, batch_size: int) -> HeldBatches:
        """Batches of "train", "validation" or "test".

        Where the authors give no validation split, it is `validation_examples` of the
        training split, which then lacks them.

        Raises:
          DataError: if the data cannot be had or read.
        """
        buckets = Buckets(self.config.bucket_lengths, batch_size)
        if split == "test" or "validation" in self.module.SPLITS:
            return HeldBatches(self._split(split), buckets)
        rows = self._split("train")
        held_out = self.config.validation_examples
        subset = split_off(split, len(rows), held_out, self.seed)
        return HeldBatches(rows, buckets, subset)

    def _split(self, split) -> PackedRows:
        if split not in self._splits:
            rows, _ = tokenized(self.config, self.tokenizer, split)
            self._splits[split] = rows
            self._report(split, rows.targets)
        return self._splits[split]

    def _name(self, split):
        return f"{self.config.dataset} {split}"

    def _report(self, split, targets):
        """Warns of examples and of classes that are missing."""
        whole = getattr(self.module, "NUM_EXAMPLES", {}).get(split, len(targets))
        if len(targets) != whole:
            logger.warning(
                "%s: found %s of the data set's %s examples",
                self._name(split),
                f"{len(targets):,}",
                f"{whole:,}",
            )
        counts = np.bincount(targets, minlength=len(self.class_names))
        if missing := [self.class_names[i] for i in np.flatnonzero(counts == 0)]:
            logger.warning(
                "%s: found no examples of the classes %s",
                self._name(split),
                ", ".join(missing),
            )
