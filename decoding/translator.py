"""Text to text: a trained encoder-decoder, its tokenizer, and beam search."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from common.errors import UserError
from data.buckets import Buckets
from data.tokenizers.subwords import END, START
from decoding.beam_search import IMPOSSIBLE, beam_search
from models.convert import carry_weights, fold_rotations


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
    """

    def __init__(self, model, tokenizer, settings, bucket_lengths):
        self.tokenizer = tokenizer
        self.settings = settings
        self.buckets = Buckets(bucket_lengths, settings.batch_size)
        self.model = model
        self._folded = fold_rotations(model)
        self._search = tf.function(self._searched)

    def refresh(self) -> None:
        """To be called when the model's weights have changed; no search is retraced."""
        if self._folded is not self.model:
            carry_weights(self.model, self._folded)

    def translate(
        self, texts: list[str], on_progress: Callable = lambda num_texts: None
    ) -> list[list[Translation]]:
        """The `beam_size` best translations of each text, finished ones first.

        A translation is one line: line breaks in it become spaces.

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
        for indices, rows in self.buckets.extended(longest).fill(sources, END):
            tokens, scores = (x.numpy() for x in self._search(tf.constant(rows)))
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

    def _sources(self, texts) -> dict[int, np.ndarray]:
        """{index: token ids} of the texts that are not blank."""
        indices = [index for index, text in enumerate(texts) if text.strip()]
        if not indices:
            return {}
        ids = self.tokenizer(tf.constant([texts[index] for index in indices]))
        rows = [np.append(row, END).astype("int32") for row in ids.to_list()]
        return dict(zip(indices, rows, strict=True))

    def _searched(self, rows):
        """Tokens and scores of the hypotheses for (batch, length) source ids."""
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
