"""Text to text by beam search: in any graph, and many texts as evaluation does it."""

import logging
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from common.errors import UserError
from data.buckets import Buckets
from data.packed import PackedRows
from data.tokenizers.subwords import END, START
from decoding.beam_search import IMPOSSIBLE, Hypotheses, beam_search
from models.attention.cache import longer
from models.convert import carry_weights, fold_rotations

logger = logging.getLogger("transevolve")

BLANK = r"[\s\pZ]*"
# Where Python's str.splitlines ends a line; a translation is one.
LINE_BREAK = r"\r\n|[\n\v\f\r\x1c-\x1e\x{85}\x{2028}\x{2029}]"


def longest_source(bucket_lengths: Sequence[int]) -> int:
    """Subwords of a source, its end included; what is longer is cut.

    Attention takes memory by its square. So these are 1,024, or the last bucket of the
    run if it is longer.
    """
    return max(1024, int(bucket_lengths[-1]))


def encode(tokenizer, texts: tf.Tensor, longest: int) -> tuple:
    """Source ids of texts.

    Args:
      tokenizer: `SubwordTokenizer`.
      texts: string [batch].
      longest: subwords and end; what is longer is cut before the end.

    Returns:
      int32 ragged [batch, (length)], of a blank text the end alone; and bool [batch],
      which were cut.
    """
    blank = tf.strings.regex_full_match(texts, BLANK)
    ids = tokenizer(tf.where(blank, "", texts))
    truncated = ids.row_lengths() > longest - 1
    ends = tf.fill([ids.nrows(), 1], END)
    return tf.concat([ids[:, : longest - 1], ends], axis=1), truncated


def search(model, rows, settings, static_shapes: bool) -> Hypotheses:
    """The best translations of source ids.

    Args:
      model: `EncoderDecoder`.
      rows: int32 [batch, length], padded with zeros.
      settings: the `decode` part of a config.
      static_shapes: see `beam_search`; the shape of `rows` is then static.
    """
    batch_size, length = rows.shape if static_shapes else tf.unstack(tf.shape(rows))
    extra = settings.extra_length
    lengths = tf.math.count_nonzero(rows, axis=1, dtype=tf.int32)
    return beam_search(
        cached_step(model, rows),
        model.empty_cache(batch_size, settings.beam_size),
        # A blank text, of which there is nothing to translate, holds up nobody.
        tf.where(lengths > 1, lengths + extra, 1),
        length + extra if static_shapes else None,
        settings.beam_size,
        settings.length_penalty,
        START,
        END,
    )


def cached_step(model, sources) -> Callable:
    """Returns the model's own step for `beam_search`, which computes nothing twice."""
    source_cache = model.source_cache(sources)

    def step(tokens, cache, position):
        return model.step(tokens, source_cache, cache, position)

    return step


def decode(tokenizer, tokens: tf.Tensor) -> tf.Tensor:
    """Texts of one line each, string [batch, beams].

    Args:
      tokenizer: `SubwordTokenizer`.
      tokens: of `Hypotheses`.
    """
    shape = tf.shape(tokens)
    rows = tf.reshape(tokens, [-1, shape[2]])
    real = (rows != 0) & (rows != END)
    texts = tokenizer.decode(tf.ragged.boolean_mask(rows, real))
    texts = tf.strings.regex_replace(texts, f"({LINE_BREAK})$", "")
    texts = tf.strings.regex_replace(texts, LINE_BREAK, " ")
    return tf.reshape(texts, shape[:2])


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
        results = [""] * len(texts)
        if not texts:
            return results
        longest = longest_source(self.buckets.lengths)
        ids, truncated = encode(self.tokenizer, tf.constant(texts), longest)
        for index in np.flatnonzero(truncated):
            logger.warning("text %d: cut at %d subwords", index + 1, longest - 1)
        sources = PackedRows(ids.values.numpy(), ids.row_lengths().numpy()[:, None])
        lengths = sources.longest
        (to_translate,) = np.nonzero(lengths > 1)  # the others are blank
        on_progress(len(texts) - len(to_translate))
        buckets = self.buckets.extended(lengths.max(), longest)
        buckets.rows = -(-buckets.rows // self._replicas) * self._replicas
        batches, _ = buckets.plan(lengths, to_translate)
        for bucket, indices in reversed(batches):  # the longest first
            rows = sources.batch(indices, *buckets.shapes[bucket])["inputs"]
            if not self._static_shapes:
                rows = rows[: -(-len(indices) // self._replicas) * self._replicas]
            tokens, scores = self._hypotheses(rows)
            if not (scores[: len(indices), 0] > IMPOSSIBLE).all():
                raise UserError("expected a trained model, found weights not finite")
            best = decode(self.tokenizer, tokens[: len(indices), :1]).numpy()[:, 0]
            for index, text in zip(indices, best, strict=True):
                results[index] = text.decode()
            on_progress(len(indices))
        return results

    def _hypotheses(self, rows: np.ndarray) -> list[np.ndarray]:
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
