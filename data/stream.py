"""Rows that are tokenized while they are read, and batches of them: no text is too
large. Or all rows of a split, kept on disk: a second run starts at once."""

import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice

import numpy as np
import tensorflow as tf

from common.paths import is_remote
from common.progress import progress_bar
from data import DATASETS
from data.batches import Batches, dataset, untuned
from data.buckets import Buckets
from data.files import cached_folder
from data.packed import PackedRows
from data.rows import DataError, GoodRows

logger = logging.getLogger("transevolve")


class TokenStream:
    """The rows of a split as token ids, a chunk at a time, read anew by each `chunks`.

    Texts that have classes are cut at `max_length`. Others are closed by the
    tokenizer's `end`, and never cut.

    Args:
      config: the `data` part of a config.
      tokenizer: see `data.tokenizers`.
      split: "train", "validation" or "test".
      chunk_size: rows of a chunk.

    Attributes, of the latest call of `chunks`:
      skipped: bad rows that were left out.
      cut: texts that were cut.
      words: of plain text, parted by white space; the end of a line is one.
    """

    def __init__(self, config, tokenizer, split: str, chunk_size: int = 1024):
        self._config, self._split, self._chunk_size = config, split, chunk_size
        self._module = DATASETS[config.dataset]
        self._has_classes = self._module.KIND == "classification"
        self._is_plain = self._module.KIND == "plain_text"
        self._end = None if self._has_classes else tokenizer.end
        dtype = tf.uint16 if tokenizer.vocabulary_size <= 2**16 else tf.uint32

        def tokenize(texts, labels):
            ids = tokenizer(texts)
            lengths = tf.cast(ids.row_lengths(), tf.int32)
            return tf.cast(ids.flat_values, dtype), lengths, labels

        signature = tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32)
        dataset = tf.data.Dataset.from_generator(
            self._texts, output_signature=signature
        ).map(tokenize, num_parallel_calls=tf.data.AUTOTUNE)
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        self._dataset = dataset.with_options(untuned(2 + os.cpu_count()))

    @property
    def skipped(self) -> int:
        return self._good.skipped

    def chunks(self) -> Iterator[PackedRows]:
        """Yields all rows, from the first; to be read to the end before a new start.

        Raises:
          DataError: for bad input.
        """
        rows = self._module.read(self._config, self._split)
        self._good = GoodRows(rows, self._config.on_error)
        self._failure, self.cut, self.words = None, 0, 0
        rows = iter(self._good)
        # Data that must be downloaded or made for it is so in this thread, which an
        # interruption reaches.
        self._rows = chain(list(islice(rows, 1)), rows)
        for tokens, lengths, labels in self._dataset.as_numpy_iterator():
            ends = np.cumsum(lengths)
            if self._has_classes:
                longest = self._config.max_length
                self.cut += int(np.sum(lengths > longest))
                places = np.arange(len(tokens)) - np.repeat(ends - lengths, lengths)
                lengths = np.minimum(lengths, longest)
                yield PackedRows(tokens[places < longest], lengths[:, None], labels)
            else:
                tokens = np.insert(tokens, ends, self._end)
                texts = 1 if self._is_plain else 2
                yield PackedRows(tokens, (lengths + 1).reshape(-1, texts))
        if self._failure is not None:
            raise self._failure

    def _texts(self):
        # An exception that crosses TensorFlow comes out as another with a long text.
        try:
            while chunk := list(islice(self._rows, self._chunk_size)):
                texts = [text for row in chunk for text in row.texts]
                labels = [row.label for row in chunk] if self._has_classes else []
                if self._is_plain:
                    self.words += sum(len(text.split()) + 1 for text in texts)
                yield np.array(texts, object), np.array(labels, np.int32)
        except Exception as error:
            self._failure = error


def tokenized(config, tokenizer, split: str) -> tuple[PackedRows, dict[str, int]]:
    """All rows of a split, of one text each, as tokenized now or in an earlier run.

    Args:
      config, tokenizer, split: see `TokenStream`.

    Returns:
      The rows; and {what: how many there are, or were left out}. The counts of plain
      text have "words".

    Raises:
      DataError: if there are none, or for bad input.
    """
    name, module = f"{config.dataset} {split}", DATASETS[config.dataset]
    is_plain = module.KIND == "plain_text"
    what, longest = "lines" if is_plain else "examples", config.get("max_length")
    identity = [
        config.dataset,
        split,
        module.identify(config, split),
        tokenizer.identity,
        longest,
        config.on_error,
    ]

    def write(folder):
        stream, parts = TokenStream(config, tokenizer, split), []
        with progress_bar(desc=f"tokenizing {name}", unit=f" {what}") as bar:
            for part in stream.chunks():
                parts.append(part)
                bar.update(len(part))
        if not parts:
            raise DataError(f"{name}: expected {what}, found none")
        rows = PackedRows.join(parts)
        np.save(folder / "tokens.npy", rows.tokens)
        np.save(folder / "lengths.npy", rows.lengths[:, 0])
        if is_plain:
            counts = {"words": stream.words, "tokens": len(rows.tokens)}
        else:
            np.save(folder / "targets.npy", rows.targets)
            counts = {f"cut at {longest} tokens": stream.cut}
        counts = {what: len(rows), **counts, "bad rows skipped": stream.skipped}
        (folder / "summary.json").write_text(json.dumps(counts) + "\n")

    folder = cached_folder(config, "tokens", identity, write)
    counts = json.loads((folder / "summary.json").read_text())
    said = ", ".join(f"{number:,} {words}" for words, number in counts.items())
    logger.info("%s: %s", name, said)
    tokens, lengths = (_load(folder / f"{part}.npy") for part in ("tokens", "lengths"))
    targets = None if is_plain else _load(folder / "targets.npy")
    return PackedRows(tokens, lengths[:, None], targets), counts


def _load(path):
    with path.open("rb") as file:
        return np.load(io.BytesIO(file.read()) if is_remote(path) else file)


class StreamedBatches(Batches):
    """Batches of pairs that are read anew in each epoch, shuffled within windows.

    A pair that no bucket holds is left out.

    Args:
      name: of the split, for messages.
      make_stream: function without arguments that returns a new `TokenStream`.
      buckets: how to batch.
      shuffle_window: pairs that are shuffled together. Two windows are held in memory:
        one is dealt while the next fills.
      fingerprint: of the pairs, see `Batches`.
      earlier_fingerprint: function without arguments that returns the one which earlier
        versions kept of such pairs; None if it was the same.

    Attributes:
      num_batches, num_examples: see `Batches`; known when an epoch has been read to its
        end. A run that goes on may set them, to start in its epoch without reading all
        those before.
      counts: how many pairs of an epoch were read, left out as too long, and skipped as
        bad rows; None until known.
    """

    def __init__(
        self,
        name: str,
        make_stream: Callable[[], TokenStream],
        buckets: Buckets,
        shuffle_window: int,
        fingerprint=None,
        earlier_fingerprint: Callable | None = None,
    ):
        self.name = name
        self.fingerprint = fingerprint
        self.buckets = buckets
        self.shuffle_window = shuffle_window
        self.num_batches = self.num_examples = self.counts = None
        self._so_far = {"read": 0, "too_long": 0, "skipped": 0}
        self._earlier_fingerprint = earlier_fingerprint or (lambda: fingerprint)
        self._make_stream = make_stream
        self._failure = None

    def has_fingerprint(self, stored):
        return super().has_fingerprint(stored) or self._earlier_fingerprint() == stored

    def for_training(self, seed: int, first_batch: int = 0) -> tf.data.Dataset:
        """See `Batches`. Bad input ends it with an error of TensorFlow: iterate
        `with own_errors()`."""

        def batches():
            try:
                yield from self._batches(seed, first_batch)
            except Exception as error:
                self._failure = error
                raise

        return dataset(batches, self.buckets)

    @contextmanager
    def own_errors(self):
        """Raises the error that ended a dataset, a `DataError` as a rule, instead of
        TensorFlow's.

        At the end, logs what has been read and left out, if no epoch has ended.
        """
        try:
            yield
        except tf.errors.OpError:
            if self._failure is None:
                raise
            raise self._failure from None
        if self.counts is None:
            logger.info("%s: so far %s", self.name, self._summary())

    def _batches(self, seed, first_batch):
        epoch, skip = 0, first_batch
        if self.num_batches is not None:
            epoch, skip = divmod(first_batch, self.num_batches)
        random = np.random.default_rng([seed, epoch])
        progress = progress_bar(
            desc=f"reading {self.name} up to the first batch",
            unit=" pairs",
            unit_scale=True,
            delay=2,
            leave=False,
        )
        window = _Window(self._chunks(progress))
        left = []
        while True:
            window.fill(self.shuffle_window)
            pairs, is_last = window.take(left)
            order = random.permutation(len(pairs))
            batches, rest = self.buckets.plan(pairs.longest, order, flush=is_last)
            for number, index in enumerate(random.permutation(len(batches)), start=1):
                if skip:
                    skip -= 1
                    continue
                # Bit by bit, so that no step waits for a whole window.
                window.fill(self.shuffle_window * number // len(batches))
                progress.close()
                bucket, indices = batches[index]
                yield pairs.batch(indices, *self.buckets.shapes[bucket])
            left = [pairs.take(rest)]
            del pairs  # before the next window is joined
            if is_last:
                epoch += 1
                random = np.random.default_rng([seed, epoch])

    def _chunks(self, progress):
        """Yields the pairs that a bucket holds, a chunk at a time; None ends an epoch.

        Without end, unless by a `DataError`.
        """
        stream, longest = self._make_stream(), self.buckets.lengths[-1]
        while True:
            self._so_far = dict.fromkeys(("read", "too_long", "skipped"), 0)
            sizes = np.zeros(len(self.buckets.lengths), np.int64)
            for chunk in stream.chunks():
                progress.update(len(chunk))
                (fits,) = np.nonzero(chunk.longest <= longest)
                self._so_far["read"] += len(chunk)
                self._so_far["too_long"] += len(chunk) - len(fits)
                self._so_far["skipped"] = stream.skipped
                if len(fits) < len(chunk):
                    chunk = chunk.take(fits)
                sizes += self.buckets.count(chunk.longest)
                yield chunk
            self._so_far["skipped"] = stream.skipped
            self._end_epoch(sizes)
            yield None

    def _summary(self):
        return (
            f"{self._so_far['read']:,} pairs, {self._so_far['too_long']:,} left out as "
            f"longer than {self.buckets.lengths[-1] - 1} subwords, "
            f"{self._so_far['skipped']:,} bad rows skipped"
        )

    def _end_epoch(self, sizes):
        num_examples, num_batches = int(sizes.sum()), self.buckets.num_batches(sizes)
        summary = self._summary()
        if not num_examples:
            raise DataError(f"{self.name}: expected pairs to train on, found {summary}")
        if self.num_batches not in (None, num_batches):
            raise DataError(
                f"{self.name}: expected {self.num_batches:,} batches in an epoch, as "
                f"before, found {num_batches:,}: the data is not the same"
            )
        if self.counts is None:
            logger.info("%s: %s", self.name, summary)
        self.num_batches, self.num_examples = num_batches, num_examples
        self.counts = self._so_far


class _Window:
    """The next pairs to shuffle together, all of one epoch."""

    def __init__(self, chunks: Iterator[PackedRows | None]):
        self._chunks = chunks
        self._parts, self._num_pairs, self._is_last = [], 0, False

    def fill(self, num_pairs: int):
        """Reads until so many pairs are there, or the epoch ends."""
        while self._num_pairs < num_pairs and not self._is_last:
            chunk = next(self._chunks)
            if chunk is None:
                self._is_last = True
            else:
                self._parts.append(chunk)
                self._num_pairs += len(chunk)

    def take(self, left: list[PackedRows]) -> tuple[PackedRows, bool]:
        """What was left before and what was read, and whether the epoch ends here."""
        taken = PackedRows.join(left + self._parts), self._is_last
        self._parts, self._num_pairs, self._is_last = [], 0, False
        return taken
