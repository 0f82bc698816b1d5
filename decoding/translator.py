"""Text to text: a trained encoder-decoder, its tokenizer, and beam search."""

import logging
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from common.errors import UserError
from data.buckets import Buckets
from data.tokenizers.subwords import END, START
from decoding.beam_search import IMPOSSIBLE, beam_search
from models.convert import carry_weights, fold_rotations

# Subwords of a source; what is longer is cut. Attention takes memory by its square.
LONGEST_SOURCE = 1024

logger = logging.getLogger("transevolve")


class Translation(NamedTuple):
    """A translation and its score, the log-probability over the length penalty."""

    text: str
    score: float

    def __str__(self):
        return self.text


class Translator:
    """Translates lists of texts in batches of one static shape per length bucket.

    Args:
      model: `EncoderDecoder`, trained.
      tokenizer: `SubwordTokenizer`.
      settings: the `decode` part of a config: beam_size, length_penalty, batch_size,
        and extra_length, by how many tokens a target may be longer than its source.
      bucket_lengths: of sources, see `data.buckets.Buckets`; longer ones get a multiple
        of the last.
      strategy: that the model was made under; each replica searches for a batch of its
        own. None for one device.
    """

    def __init__(self, model, tokenizer, settings, bucket_lengths, strategy=None):
        self.tokenizer = tokenizer
        self.settings = settings
        self.strategy = strategy or tf.distribute.get_strategy()
        self._replicas = self.strategy.num_replicas_in_sync
        self.buckets = Buckets(bucket_lengths, self._replicas * settings.batch_size)
        self.model = model
        with self.strategy.scope():
            self._folded = fold_rotations(model)
        self._search = tf.function(
            lambda rows: self.strategy.run(self._searched, args=(rows,)),
            autograph=False,
        )

    def refresh(self) -> None:
        """To be called when the model's weights have changed; no search is retraced."""
        if self._folded is not self.model:
            carry_weights(self.model, self._folded)

    def translate(
        self, texts: list[str], on_progress: Callable = lambda num_texts: None
    ) -> list[list[Translation]]:
        """The `beam_size` best translations of each text, finished ones first.

        A translation is one line: line breaks in it become spaces. A source of more
        than `LONGEST_SOURCE` subwords, or the last bucket if that is longer, is cut,
        and a warning says so.

        Args:
          texts: a blank one has one translation, an empty text of score 0.
          on_progress: called with a number of texts just done.

        Raises:
          UserError: if the weights are not finite.
        """
        sources = self._sources(texts)
        results = [[Translation("", 0.0)] for _ in texts]
        on_progress(len(texts) - len(sources))
        longest = max(map(len, sources.values()), default=0)
        buckets = self.buckets.extended(longest)
        buckets.rows = -(-buckets.rows // self._replicas) * self._replicas
        for indices, rows in buckets.fill(sources, END):
            tokens, scores = self._found(rows)
            if not (scores[: len(indices), 0] > IMPOSSIBLE).all():
                raise UserError("expected a trained model, found weights not finite")
            best = self._decode(tokens[: len(indices)])
            for place, index in enumerate(indices):
                results[index] = [
                    Translation(text, float(score))
                    for text, score in zip(best[place], scores[place], strict=True)
                    if score > IMPOSSIBLE
                ]
            on_progress(len(indices))
        return results

    def _found(self, rows: np.ndarray) -> list[np.ndarray]:
        """Tokens and scores of the hypotheses for (batch, length) source ids."""
        parts = np.split(rows, self._replicas)
        values = self.strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(parts[context.replica_id_in_sync_group])
        )
        return [
            np.concatenate(self.strategy.experimental_local_results(value))
            for value in self._search(values)
        ]

    def _sources(self, texts) -> dict[int, np.ndarray]:
        """{index: token ids} of the texts that are not blank."""
        indices = [index for index, text in enumerate(texts) if text.strip()]
        if not indices:
            return {}
        ids = self.tokenizer(tf.constant([texts[index] for index in indices]))
        longest = max(LONGEST_SOURCE, int(self.buckets.lengths[-1])) - 1
        rows = dict(zip(indices, ids.to_list(), strict=True))
        for index, row in rows.items():
            if len(row) > longest:
                logger.warning(
                    "text %d: cut at %d of %d subwords", index + 1, longest, len(row)
                )
        return {
            index: np.append(row[:longest], END).astype("int32")
            for index, row in rows.items()
        }

    def _searched(self, rows):
        """A replica's part of `_found`."""
        batch_size, length = rows.shape
        beams = self.settings.beam_size
        longest = length + self.settings.extra_length
        lengths = tf.math.count_nonzero(rows, axis=1, dtype=tf.int32)
        memory = self._folded.memory(rows)

        def step(tokens, cache, position):
            return self._folded.step(tokens, memory, cache, position)

        return beam_search(
            step,
            self._folded.empty_cache(batch_size, beams),
            lengths + self.settings.extra_length,
            longest,
            beams,
            self.settings.length_penalty,
            START,
            END,
        )

    def _decode(self, tokens):
        """Texts (sentences, beams) of ids (sentences, beams, length)."""
        sentences, beams, length = tokens.shape
        real = (tokens != 0) & (tokens != END)
        rows = tf.RaggedTensor.from_row_lengths(
            tokens[real], real.reshape(-1, length).sum(1)
        )
        texts = self.tokenizer.decode(rows).numpy().reshape(sentences, beams)
        return [
            [" ".join(text.decode("utf-8").splitlines()) for text in row]
            for row in texts
        ]
