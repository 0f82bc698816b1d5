"""A classification dataset, tokenized and kept on disk: a second run starts at once."""

import io
import json
import logging

import numpy as np

from common.fields import integer
from common.paths import is_remote
from common.progress import progress_bar
from data import DATASETS
from data.batches import HeldBatches
from data.buckets import Buckets
from data.files import cached_folder
from data.packed import PackedRows
from data.rows import DataError
from data.stream import TokenStream
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
            self._splits[split] = self._cached(split)
            self._report(split, self._splits[split].targets)
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

    def _cached(self, split) -> PackedRows:
        """The rows as they were tokenized now, or in an earlier run."""
        config = self.config
        identity = [
            config.dataset,
            split,
            self.module.identify(config, split),
            self.tokenizer.identity,
            config.max_length,
            config.on_error,
        ]

        def write(folder):
            rows, summary = self._tokenize(split)
            np.save(folder / "tokens.npy", rows.tokens)
            np.save(folder / "lengths.npy", rows.lengths[:, 0])
            np.save(folder / "targets.npy", rows.targets)
            (folder / "summary.json").write_text(json.dumps(summary) + "\n")

        folder = cached_folder(config, "tokens", identity, write)
        summary = json.loads((folder / "summary.json").read_text())
        counts = ", ".join(f"{value:,} {what}" for what, value in summary.items())
        logger.info("%s: %s", self._name(split), counts)
        tokens, lengths, targets = (
            _load(folder / f"{name}.npy") for name in ("tokens", "lengths", "targets")
        )
        return PackedRows(tokens, lengths[:, None], targets)

    def _tokenize(self, split) -> tuple[PackedRows, dict]:
        """The rows, and how many there are and were cut or left out."""
        stream, parts = TokenStream(self.config, self.tokenizer, split), []
        title = f"tokenizing {self._name(split)}"
        with progress_bar(desc=title, unit=" examples") as bar:
            for part in stream.chunks():
                parts.append(part)
                bar.update(len(part))
        if not parts:
            raise DataError(f"{self._name(split)}: expected examples, found none")
        rows = PackedRows.join(parts)
        return rows, {
            "examples": len(rows),
            f"cut at {self.config.max_length} tokens": stream.cut,
            "bad rows skipped": stream.skipped,
        }


def _load(path):
    with path.open("rb") as file:
        return np.load(io.BytesIO(file.read()) if is_remote(path) else file)
