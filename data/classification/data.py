"""A classification dataset, tokenized: what training and evaluation need of it."""

import logging

import numpy as np

from common.fields import integer
from common.paths import make_path
from data import DATASETS
from data.classification.batching import Batcher
from data.classification.token_cache import TokenizedSplit, cached, tokenize
from data.errors import DataError, RowErrors

logger = logging.getLogger("transevolve")


class ClassificationData:
    """One dataset, tokenized: everything that training and evaluation need of it.

    Args:
      config: the `data` part of a config.
      seed: of the validation cut.
      tokenizer: from `data.tokenizers`, or as saved by an earlier run.

    Raises:
      DataError: if the data cannot be had or read.
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

    def batcher(self, split: str, batch_size: int) -> Batcher:
        """Batches of "train", "validation" or "test".

        Where the authors give no validation split, it is cut from "train" by the
        seed: `validation_examples` of them, which "train" then lacks.
        """
        if split == "test" or "validation" in self.module.SPLITS:
            tokenized = self._split(split)
            subset = np.arange(len(tokenized.targets))
        else:
            tokenized = self._split("train")
            subset = self._cut(len(tokenized.targets), split)
        return Batcher(tokenized, subset, batch_size, self.config.bucket_lengths)

    def _cut(self, total, split):
        """Indices of the part "train" or "validation" of the training examples."""
        held_out = self.config.validation_examples
        if held_out >= total:
            raise DataError(
                "--config.data.validation_examples: expected less than the "
                f"{total:,} training examples, found {held_out:,}; a tenth of them is "
                f"--config.data.validation_examples={max(1, total // 10)}"
            )
        order = np.random.default_rng(self.seed).permutation(total)
        return np.sort(order[:held_out] if split == "validation" else order[held_out:])

    def _split(self, name: str) -> TokenizedSplit:
        if name not in self._splits:
            config = self.config
            identity = [
                config.dataset,
                name,
                self.module.identify(config, name),
                self.tokenizer.identity,
                config.max_length,
                config.on_error,
            ]
            split = cached(
                f"{config.dataset} {name}",
                make_path(config.cache_dir, "--config.data.cache_dir"),
                identity,
                lambda: self._tokenize(name),
            )
            if not len(split.targets):
                raise DataError(
                    f"{config.dataset} {name}: expected examples, found none"
                )
            self._report_part(name, len(split.targets))
            self._report_classes(name, split.targets)
            self._splits[name] = split
        return self._splits[name]

    def _report_classes(self, name, targets):
        counts = np.bincount(targets, minlength=len(self.class_names))
        if missing := [self.class_names[i] for i in np.flatnonzero(counts == 0)]:
            logger.warning(
                "%s %s: found no examples of the classes %s",
                self.config.dataset,
                name,
                ", ".join(missing),
            )

    def _report_part(self, name, found):
        whole = getattr(self.module, "NUM_EXAMPLES", {}).get(name, found)
        if found != whole:
            logger.warning(
                "%s %s: found %s of the data set's %s examples",
                self.config.dataset,
                name,
                f"{found:,}",
                f"{whole:,}",
            )

    def _tokenize(self, name):
        errors = RowErrors(self.config.on_error)
        examples = errors.keep_good(self.module.read(self.config, name))
        split, summary = tokenize(
            examples,
            self.tokenizer,
            self.config.max_length,
            f"{self.config.dataset} {name}",
        )
        return split, {
            "examples": summary["examples"],
            f"cut at {self.config.max_length} tokens": summary["cut"],
            "bad rows skipped": errors.skipped,
        }
