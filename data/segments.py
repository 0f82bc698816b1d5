"""Plain text as segments of one length, for language models."""

import io
import json
import logging
from itertools import count
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from common.fields import integer
from common.paths import is_remote
from common.progress import progress_bar
from data import DATASETS
from data.batches import Batches, dataset, fingerprint
from data.buckets import Buckets
from data.files import cached_folder
from data.rows import DataError, GoodRows

LINES_AT_A_TIME = 1024

logger = logging.getLogger("transevolve")


class Text(NamedTuple):
    """A split.

    Attributes:
      tokens: its ids, line after line, each closed by the tokenizer's `end`.
      words: how many it has, parted by white space; the end of a line is one.
      lines: how many it has.
    """

    tokens: np.ndarray
    words: int
    lines: int


class SegmentData:
    """A plain text, tokenized: what training and evaluating a language model need.

    Args:
      config: the `data` part of a config.
      tokenizer: from `data.tokenizers`, or as saved by an earlier run.
    """

    FIELDS = {
        "segment_length": integer(
            "Tokens that the model sees together.", minimum=2, maximum=1_000_000
        )
    }

    def __init__(self, config, tokenizer):
        self.config = config
        self.tokenizer = tokenizer
        self.module = DATASETS[config.dataset]
        self._texts = {}

    def text(self, split: str) -> Text:
        """The tokens of a split, as they were made now or in an earlier run.

        Raises:
          DataError: if the data cannot be had or read.
        """
        if split not in self._texts:
            self._texts[split] = self._cached(split)
        return self._texts[split]

    def train(self, batch_size: int) -> "Streams":
        """Batches of the training text, in its order."""
        length = self.config.segment_length
        return Streams(
            self.text("train").tokens, self.tokenizer.end, batch_size, length
        )

    def evaluation(self, split: str, batch_size: int, slides: bool) -> "Segments":
        """Batches in which each token of a split is predicted once.

        Args:
          slides: see `Segments`.
        """
        length, end = self.config.segment_length, self.tokenizer.end
        return Segments(self.text(split).tokens, end, batch_size, length, slides)

    def _cached(self, split) -> Text:
        config, name = self.config, f"{self.config.dataset} {split}"
        identity = [
            self.module.identify(config, split),
            self.tokenizer.identity,
            config.on_error,
        ]

        def write(folder):
            text, skipped = self._tokenize(split, name)
            np.save(folder / "tokens.npy", text.tokens)
            summary = {"lines": text.lines, "words": text.words, "skipped": skipped}
            (folder / "summary.json").write_text(json.dumps(summary) + "\n")

        folder = cached_folder(config, "text", identity, write)
        summary = json.loads((folder / "summary.json").read_text())
        with (folder / "tokens.npy").open("rb") as file:
            tokens = np.load(io.BytesIO(file.read()) if is_remote(folder) else file)
        logger.info(
            "%s: %s tokens, %s lines, %s words, %s bad lines skipped",
            name,
            *(f"{x:,}" for x in (len(tokens), *map(summary.get, summary))),
        )
        return Text(tokens, summary["words"], summary["lines"])

    def _tokenize(self, split, name) -> tuple[Text, int]:
        """The text, and how many bad lines it has."""
        rows = GoodRows(self.module.read(self.config, split), self.config.on_error)
        dtype = np.uint16 if self.tokenizer.vocabulary_size <= 2**16 else np.uint32
        parts, lines, words = [], [], []

        def tokenize():
            ids = self.tokenizer(tf.constant(lines, tf.string))
            ends = np.cumsum(ids.row_lengths())
            tokens = np.insert(ids.flat_values, ends, self.tokenizer.end)
            parts.append(tokens.astype(dtype))
            lines.clear()

        for line in progress_bar(rows, desc=f"tokenizing {name}", unit=" lines"):
            lines.append(line.text)
            words.append(len(line.text.split()) + 1)
            if len(lines) == LINES_AT_A_TIME:
                tokenize()
        if not words:
            raise DataError(f"{name}: expected lines, found none")
        tokenize()
        return Text(np.concatenate(parts), sum(words), len(words)), rows.skipped


class _OneLength(Batches):
    """Batches of rows of one length, of which the last may be padded.

    Args:
      tokens: of a split.
      end: the id before the first token.
      batch_size: rows of a batch.
      length: tokens of a row.
    """

    def __init__(self, tokens, end, batch_size, length):
        self.tokens, self.length = tokens, length
        self.fingerprint = fingerprint(tokens)
        self.buckets = Buckets([length], batch_size)
        # Each token's input is the one before it.
        self._inputs = np.insert(tokens[:-1], 0, end)

    def _rows(self, starts, ends, shown):
        """A batch of the tokens [start, end) of each row, of which the first `shown`
        are context alone: no target."""
        places = np.arange(self.length)
        positions = np.asarray(starts)[:, None] + places
        real = positions < np.asarray(ends)[:, None]
        positions = np.where(real, positions, 0)
        is_target = real & (places >= np.asarray(shown)[:, None])
        return {
            "inputs": np.where(real, self._inputs[positions], 0).astype(np.int32),
            "targets": np.where(is_target, self.tokens[positions], 0).astype(np.int32),
        }


class Streams(_OneLength):
    """Segments that go on from one another, row by row, as many streams as rows.

    The tokens are cut to one stream a row, and each batch goes on from the one before.
    When all are at their ends, each row goes on with the next stream. An epoch leaves
    out fewer tokens than a batch has rows.
    """

    def __init__(self, tokens, end, batch_size, length):
        super().__init__(tokens, end, batch_size, length)
        self._stream = len(tokens) // batch_size
        if not self._stream:
            raise DataError(
                f"train: expected at least train.batch_size={batch_size:,} tokens, "
                f"found {len(tokens):,}"
            )
        self.num_examples = batch_size
        self.num_batches = -(-self._stream // length)

    def train(self, seed: int, first_batch: int = 0) -> tf.data.Dataset:
        """See `Batches`; the text has its order in each epoch."""
        streams = np.arange(self.num_examples)

        def batches():
            for batch in count(first_batch):
                epoch, number = divmod(batch, self.num_batches)
                firsts = np.roll(streams, -epoch) * self._stream
                starts = firsts + number * self.length
                ends = np.minimum(starts + self.length, firsts + self._stream)
                yield self._rows(starts, ends, 0 * starts)

        return dataset(batches, self.buckets)


class Segments(_OneLength):
    """Rows in which each token is predicted once, whatever the number of rows.

    Args:
      slides: whether a window goes over the text token by token, and predicts its last
        one; of the first window all. Else the text is cut to segments.
      tokens, end, batch_size, length: see `_OneLength`.
    """

    def __init__(self, tokens, end, batch_size, length, slides):
        super().__init__(tokens, end, batch_size, length)
        self._slides = slides
        step = 1 if slides else length
        # The last window of those that slide ends with the text.
        last = max(len(tokens) - length, 0) if slides else len(tokens) - 1
        self._starts = np.arange(0, last + 1, step)
        self.num_examples = len(self._starts)
        self.num_batches = -(-self.num_examples // batch_size)

    def evaluate(self) -> tf.data.Dataset:
        """See `Batches`; in the order of the text."""
        rows = self.buckets.batch_size

        def batches():
            for first in range(0, self.num_examples, rows):
                starts = self._starts[first : first + rows]
                missing = rows - len(starts)
                ends = np.minimum(starts + self.length, len(self.tokens))
                shown = np.where(self._slides & (starts > 0), self.length - 1, 0)
                starts, ends, shown = (
                    np.pad(x, (0, missing)) for x in (starts, ends, shown)
                )
                yield self._rows(starts, ends, shown)

        return dataset(batches, self.buckets)
