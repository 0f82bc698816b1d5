"""Token ids of a whole split, kept on disk: the second run starts at once."""

import hashlib
import io
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import tensorflow as tf

from common import cache
from common.paths import is_remote
from common.progress import progress_bar
from data.examples import Example

TEXTS_PER_CALL = 1024

logger = logging.getLogger("transevolve")


@dataclass(frozen=True)
class TokenizedSplit:
    """All examples of a split.

    Attributes:
      tokens: ids of all examples, end to end; the smallest unsigned type that fits.
      lengths: int32 [examples], tokens of each.
      targets: int32 [examples], class of each.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    targets: np.ndarray

    @cached_property
    def rows(self) -> tf.RaggedTensor:
        """The examples' tokens, and one empty row after them."""
        lengths = np.append(self.lengths, 0).astype(np.int64)
        return tf.RaggedTensor.from_row_lengths(self.tokens, lengths)


def tokenize(
    examples: Iterable[Example], tokenizer, max_length: int, name: str
) -> tuple[TokenizedSplit, dict]:
    """Tokenizes examples and cuts them at `max_length` tokens, with progress.

    Returns:
      The split and a summary: how many examples there are and how many were cut.
    """
    dtype = np.uint16 if tokenizer.vocabulary_size <= 2**16 else np.uint32
    tokens, lengths, targets = [], [], []
    cut = 0
    with progress_bar(desc=f"tokenizing {name}", unit=" examples") as progress:
        for chunk in _chunks(iter(examples)):
            ids = tokenizer(tf.constant([example.text for example in chunk]))
            cut += int(np.sum(ids.row_lengths().numpy() > max_length))
            ids = ids[:, :max_length]
            tokens.append(ids.flat_values.numpy().astype(dtype))
            lengths.append(ids.row_lengths().numpy().astype(np.int32))
            targets.append(np.array([example.label for example in chunk], np.int32))
            progress.update(len(chunk))
    if not lengths:
        tokens, lengths, targets = [np.zeros(0, dtype)], [[]], [[]]
    split = TokenizedSplit(
        np.concatenate(tokens),
        np.concatenate(lengths).astype(np.int32),
        np.concatenate(targets).astype(np.int32),
    )
    return split, {"examples": len(split.targets), "cut": cut}


def _chunks(examples: Iterator[Example]) -> Iterator[list[Example]]:
    while chunk := list(islice(examples, TEXTS_PER_CALL)):
        yield chunk


def cached(name: str, cache_dir: Path, identity, make) -> TokenizedSplit:
    """What `make` returned for this identity: now, or in an earlier run.

    Args:
      name: for the log.
      cache_dir: folder of all cached splits.
      identity: JSON-serialisable; anything that `make` depends on.
      make: function without arguments that returns (TokenizedSplit, summary).
    """

    def write(folder):
        split, summary = make()
        for field in fields(split):
            np.save(folder / f"{field.name}.npy", getattr(split, field.name))
        (folder / "summary.json").write_text(json.dumps(summary) + "\n")

    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
    folder = cache.cached(cache_dir / f"tokens-{key}", write)
    summary = json.loads((folder / "summary.json").read_text())
    counts = ", ".join(f"{value:,} {what}" for what, value in summary.items())
    logger.info("%s: %s", name, counts)
    names = (field.name for field in fields(TokenizedSplit))
    return TokenizedSplit(*(_load(folder / f"{name}.npy") for name in names))


def _load(path):
    with path.open("rb") as file:
        return np.load(io.BytesIO(file.read()) if is_remote(path) else file)
