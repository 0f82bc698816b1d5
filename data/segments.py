"""Plain text as segments of one length, for language models."""

from itertools import count
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from common.fields import choice, integer, optional
from data.batches import Batches, dataset, fingerprint
from data.buckets import Buckets
from data.rows import DataError
from data.stream import tokenized


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
        ),
        "documents": optional(
            choice(
                "Whether a segment ends with its line, and nothing before a line is "
                "seen; unset, lines are one text.",
                "apart",
            )
        ),
    }

    def __init__(self, config, tokenizer):
        self.config = config
        self.tokenizer = tokenizer
        self._texts = {}

    def text(self, split: str) -> Text:
        """The tokens of a split, as they were made now or in an earlier run.

        Raises:
          DataError: if the data cannot be had or read.
        """
        if split not in self._texts:
            rows, counts = tokenized(self.config, self.tokenizer, split)
            self._texts[split] = Text(rows.tokens, counts["words"], len(rows))
        return self._texts[split]

    def training(self, batch_size: int) -> "Streams":
        """Batches of the training text, in its order."""
        return Streams(*self._split("train", batch_size, self.config.segment_length))

    def evaluation(
        self, split: str, batch_size: int, length: int, slides: bool
    ) -> "Segments":
        """Batches in which each token of a split is predicted once.

        Args:
          batch_size, length, slides: see `Segments`.
        """
        return Segments(*self._split(split, batch_size, length), slides)

    @property
    def documents_are_apart(self) -> bool:
        """Whether a line sees nothing of the lines before it."""
        # Runs from before documents could be apart lack the field.
        return self.config.get("documents") == "apart"

    def _split(self, split, batch_size, length):
        """What `Streams` and `Segments` are both made of."""
        tokens, end = self.text(split).tokens, self.tokenizer.end
        ends = np.flatnonzero(tokens == end) + 1 if self.documents_are_apart else None
        return tokens, end, batch_size, length, ends


class _OneLength(Batches):
    """Batches of rows of one length, of which the last of a document may be padded.

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
        # Each token's input is the one before it: of a document's first one an end.
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
    out fewer tokens than a batch has rows; of documents that are apart, fewer segments.

    Args:
      tokens, end, batch_size, length: see `_OneLength`.
      document_ends: the place after the last token of each document that is apart from
        the others; None if they are one text.
    """

    def __init__(self, tokens, end, batch_size, length, document_ends=None):
        super().__init__(tokens, end, batch_size, length)
        if document_ends is None:
            document_ends = len(tokens) // batch_size * np.arange(1, batch_size + 1)
        starts, ends = _cut(document_ends, length, lambda lengths: lengths - 1)
        self.num_batches = len(starts) // batch_size
        if not self.num_batches:
            raise DataError(
                f"train: expected a text for train.batch_size={batch_size:,} rows, "
                f"found {len(starts):,} segments of {len(tokens):,} tokens"
            )
        self.num_examples = self.num_batches * batch_size
        self._streams = [
            x[: self.num_batches * batch_size].reshape(batch_size, -1)
            for x in (starts, ends)
        ]

    def for_training(self, seed: int, first_batch: int = 0) -> tf.data.Dataset:
        """See `Batches`; the text has its order in each epoch."""

        def batches():
            for batch in count(first_batch):
                epoch, number = divmod(batch, self.num_batches)
                starts, ends = (np.roll(x[:, number], -epoch) for x in self._streams)
                yield self._rows(starts, ends, 0 * starts)

        return dataset(batches, self.buckets)


class Segments(_OneLength):
    """Rows in which each token is predicted once, whatever the number of rows.

    Args:
      slides: whether a window goes over a document token by token, and predicts its
        last one; of the first window all. Else documents are cut to segments.
      tokens, end, batch_size, length, document_ends: see `Streams`.
    """

    def __init__(
        self, tokens, end, batch_size, length, document_ends=None, slides=False
    ):
        super().__init__(tokens, end, batch_size, length)
        texts = np.array([len(tokens)]) if document_ends is None else document_ends
        if slides:
            # The last window of those that slide ends with the document.
            cut = _cut(texts, 1, lambda lengths: np.maximum(lengths - length, 0))
        else:
            cut = _cut(texts, length, lambda lengths: lengths - 1)
        self._starts, self._ends = cut
        is_first = np.isin(self._starts, [0, *texts])
        self._shown = np.where(is_first | (not slides), 0, length - 1)
        self.num_examples = len(self._starts)
        self.num_batches = -(-self.num_examples // batch_size)

    def for_evaluation(self) -> tf.data.Dataset:
        """See `Batches`; in the order of the text."""
        rows = self.buckets.batch_size

        def batches():
            for first in range(0, self.num_examples, rows):
                taken = (
                    x[first : first + rows]
                    for x in (self._starts, self._ends, self._shown)
                )
                # Filled up by rows of no tokens.
                yield self._rows(*(np.pad(x, (0, rows - len(x))) for x in taken))

        return dataset(batches, self.buckets)


def _cut(ends, step, last):
    """Where rows of texts that follow one another start, and where their text ends.

    Args:
      ends: of the texts.
      step: from the start of a row to that of the next.
      last: function of the lengths of texts; where their last row may start.
    """
    starts = np.insert(ends[:-1], 0, 0)
    counts = last(ends - starts) // step + 1
    numbers = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    return np.repeat(starts, counts) + step * numbers, np.repeat(ends, counts)
