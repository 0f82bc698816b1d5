"""Translating many texts under a `tf.distribute` strategy, as evaluation does."""

import logging
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from common.errors import UserError
from data.buckets import Buckets
from data.tokenizers.subwords import END
from decoding.beam_search import IMPOSSIBLE
from decoding.translation import decode, encode, longest_source, search
from models.attention.cache import longer
from models.convert import carry_weights, fold_rotations

logger = logging.getLogger("transevolve")


class Translator:
    """Translates lists of texts in batches of one shape per length bucket.

    Args:
      model: `EncoderDecoder`, trained.
      tokenizer: `SubwordTokenizer`.
      settings: the `decode` part of a config: beam_size, length_penalty, batch_size,
        and extra_length, by how many tokens a target may be longer than its source.
      bucket_lengths: of sources, see `data.buckets.Buckets`; longer ones get a multiple
        of the last.
      strategy: that the model was made under; each replica searches for a batch of its
        own.
      static_shapes: trace a search for each bucket, whose batches are then filled up,
        as a TPU needs. Otherwise one serves them all.
    """

    def __init__(
        self, model, tokenizer, settings, bucket_lengths, strategy, static_shapes=False
    ):
        self.tokenizer = tokenizer
        self.strategy = strategy
        self._replicas = strategy.num_replicas_in_sync
        self.buckets = Buckets(bucket_lengths, self._replicas * settings.batch_size)
        self.model = model
        with strategy.scope():
            self._folded = fold_rotations(model)

        signature = None if static_shapes else [tf.TensorSpec([None, None], tf.int32)]
        searched = tf.function(
            lambda rows: search(self._folded, rows, settings, static_shapes),
            input_signature=signature,
            autograph=False,
        )
        self._static_shapes = static_shapes
        self._search = tf.function(
            # Not the inner function itself: a strategy would give it all rows.
            lambda rows: strategy.run(lambda rows: searched(rows), args=(rows,)),
            reduce_retracing=not static_shapes,
            autograph=False,
        )

    def refresh(self) -> None:
        """To be called when the model's weights have changed; no search is retraced."""
        if self._folded is not self.model:
            carry_weights(self.model, self._folded)

    def translate(
        self, texts: list[str], on_progress: Callable = lambda num_texts: None
    ) -> list[str]:
        """The best translation of each text, a line.

        A source of more subwords than `longest_source` says is cut, and a warning says
        so.

        Args:
          texts: a blank one has a blank translation.
          on_progress: called with a number of texts just done.

        Raises:
          UserError: if the weights are not finite.
        """
        sources = self._sources(texts)
        results = [""] * len(texts)
        on_progress(len(texts) - len(sources))
        longest = max(map(len, sources.values()), default=0)
        buckets = self.buckets.extended(longest)
        buckets.rows = -(-buckets.rows // self._replicas) * self._replicas
        for indices, rows in buckets.fill(sources, END):
            if not self._static_shapes:
                rows = rows[: -(-len(indices) // self._replicas) * self._replicas]
            tokens, scores = self._found(rows)
            if not (scores[: len(indices), 0] > IMPOSSIBLE).all():
                raise UserError("expected a trained model, found weights not finite")
            best = decode(self.tokenizer, tokens[: len(indices), :1]).numpy()[:, 0]
            for index, text in zip(indices, best, strict=True):
                results[index] = text.decode()
            on_progress(len(indices))
        return results

    def _found(self, rows: np.ndarray) -> list[np.ndarray]:
        """Tokens and scores of the hypotheses for (batch, length) source ids."""
        parts = np.split(rows, self._replicas)
        values = self.strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(parts[context.replica_id_in_sync_group])
        )
        tokens, scores = map(
            self.strategy.experimental_local_results, self._search(values)
        )
        longest = max(part.shape[2] for part in tokens)
        tokens = [longer(part, longest, axis=2) for part in tokens]
        return [np.concatenate(parts) for parts in (tokens, scores)]

    def _sources(self, texts) -> dict[int, np.ndarray]:
        """{index: source ids} of the texts that are not blank."""
        if not texts:
            return {}
        longest = longest_source(self.buckets.lengths)
        ids, truncated = encode(self.tokenizer, tf.constant(texts), longest)
        for index in np.flatnonzero(truncated):
            logger.warning("text %d: cut at %d subwords", index + 1, longest - 1)
        rows = (np.array(row, "int32") for row in ids.to_list())
        return {index: row for index, row in enumerate(rows) if len(row) > 1}
