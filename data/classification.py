"""A classification dataset, tokenized: what training and evaluation need of it."""

from pathlib import Path

import numpy as np

from data import DATASETS, tokenizers, vocabulary
from data.batching import Batcher
from data.errors import DataError, RowErrors
from data.token_cache import TokenizedSplit, cached, tokenize

EVALUATION_SPLITS = ("validation", "test")


def make_tokenizer(config):
    """The tokenizer that the `data` part of a config asks for.

    Raises:
      DataError: if its vocabulary, or the data to learn one from, cannot be had.
    """
    module = DATASETS[config.dataset]
    if config.tokenizer == "bytes":
        return tokenizers.ByteTokenizer()
    if config.tokenizer == "symbols":
        return tokenizers.SymbolTokenizer(module.SYMBOLS)
    if config.vocab_file or config.vocab == "bert":
        pieces = vocabulary.given(config)
    else:
        errors = RowErrors(config.on_error)
        examples = errors.keep_good(module.read(config, "train"))
        texts = (example.text for example in examples)
        pieces = vocabulary.trained(config, texts, module.identify(config, "train"))
    return tokenizers.WordPieceTokenizer(pieces)


class ClassificationData:
    """One dataset, tokenized: everything that training and evaluation need of it.

    Args:
      config: the `data` part of a config.
      seed: of the validation cut.
      tokenizer: from `make_tokenizer`, or as saved by an earlier run.

    Raises:
      DataError: if the data cannot be had or read.
    """

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
        source, subset = split, None
        if "validation" not in self.module.SPLITS and split != "test":
            source = "train"
            tokenized = self._split(source)
            total, held_out = len(tokenized.targets), self.config.validation_examples
            if held_out >= total:
                raise DataError(
                    f"--config.data.validation_examples: expected less than the "
                    f"{total} training examples, found {held_out}"
                )
            order = np.random.default_rng(self.seed).permutation(total)
            subset = np.sort(
                order[:held_out] if split == "validation" else order[held_out:]
            )
        tokenized = self._split(source)
        if subset is None:
            subset = np.arange(len(tokenized.targets))
        return Batcher(tokenized, subset, batch_size, self.config.bucket_lengths)

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
                Path(config.cache_dir).expanduser(),
                identity,
                lambda: self._tokenize(name),
            )
            if not len(split.targets):
                raise DataError(
                    f"{config.dataset} {name}: expected examples, found none"
                )
            self._splits[name] = split
        return self._splits[name]

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
