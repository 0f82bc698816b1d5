"""Translations of texts."""

from typing import NamedTuple

import tensorflow as tf

from data.tokenizers.subwords import START
from decoding.beam_search import IMPOSSIBLE
from decoding.translation import decode, encode, search
from inference.batches import in_batches
from inference.text_model import TEXT, TextModel, padded

TRANSLATION = tf.TensorSpec([None], tf.string, name="translation")


class Translation(NamedTuple):
    """A translation.

    Attributes:
      text: of one line.
      score: its log-probability over the length penalty.
      truncated: whether the model saw the beginning of the source only.
    """

    text: str
    score: float
    truncated: bool

    def __str__(self):
        return self.text


class TextTranslator(TextModel):
    """An `EncoderDecoder` for texts, by beam search.

    Args:
      model, tokenizer, dtype: see `TextModel`.
      settings: the `decode` part of a config.
      longest: subwords of a source, its end included; what is longer is cut.
      num_heads: of the model.
    """

    signatures = (*TextModel.signatures, "n_best", "score")
    main_output = "translation"

    def __init__(self, model, tokenizer, settings, longest, num_heads, dtype="float32"):
        super().__init__(model, tokenizer, dtype)
        self.longest = longest
        self.num_heads = num_heads
        self._settings = settings
        self._decode = lambda tokens: decode(tokenizer, tokens)
        self._encode = lambda text: encode(tokenizer, text, longest)
        self._search = lambda rows: search(model, rows, settings, static_shapes=False)
        self._hidden_dim = model.hidden_dim
        self._logits = lambda rows, before: model(rows, before, training=False)
        self._vocabulary_size = tokenizer.vocabulary_size

    @tf.function(input_signature=[TEXT], autograph=False)
    def serving_default(self, text):
        """The best translation of each text.

        Returns:
          `translation`, string [batch], one line each; `score`, float32 [batch], its
          log-probability over the length penalty; `truncated`, bool [batch]. A blank
          text has a blank translation of score 0.
        """
        best = self.n_best(text)
        return {
            "translation": best["translations"][:, 0],
            "score": best["scores"][:, 0],
            "truncated": best["truncated"],
        }

    @tf.function(input_signature=[TEXT], autograph=False)
    def n_best(self, text):
        """The best translations of each text, as many as there are beams.

        Returns:
          `translations`, string [batch, beams], and `scores`, float32 [batch, beams]:
          those that have ended first, then those that the longest length has cut; each
          from the best. A score of -1e9 belongs to no translation. `truncated`, bool
          [batch].
        """
        sources, truncated = self._encode(text)

        def best(rows):
            with self._scope():
                found = self._search(padded(tf.gather(sources, rows)))
            return self._decode(found.tokens), found.scores

        shape = [None, self._settings.beam_size]
        lengths = tf.cast(sources.row_lengths(), tf.int32)
        translations, scores = in_batches(
            best,
            lengths,
            [tf.TensorSpec(shape, tf.string), tf.TensorSpec(shape, tf.float32)],
            self._numbers,
            self._settings.batch_size,
        )
        blank = (lengths == 1)[:, None]
        no_others = tf.constant([[0.0] + [IMPOSSIBLE] * (shape[1] - 1)])
        return {
            "translations": tf.where(blank, "", translations),
            "scores": tf.where(blank, no_others, scores),
            "truncated": truncated,
        }

    @tf.function(input_signature=[TEXT, TRANSLATION], autograph=False)
    def score(self, text, translation):
        """What the model thinks of given translations.

        Returns:
          `log_prob`, float32 [batch], of each translation and its end; `tokens`, int32
          [batch], how many these are; `truncated`, bool [batch], whether text or
          translation was cut.
        """
        sources, source_cut = self._encode(text)
        targets, target_cut = self._encode(translation)
        longer = tf.maximum(sources.row_lengths(), targets.row_lengths())

        def log_probs(rows):
            return [
                self._log_probs(
                    padded(tf.gather(sources, rows)), padded(tf.gather(targets, rows))
                )
            ]

        (log_prob,) = in_batches(
            log_probs,
            tf.cast(longer, tf.int32),
            [tf.TensorSpec([None], tf.float32)],
            lambda n: tf.maximum(self.num_heads * n, self._vocabulary_size) * n,
            self._settings.batch_size,
        )
        return {
            "log_prob": log_prob,
            "tokens": tf.cast(targets.row_lengths(), tf.int32),
            "truncated": source_cut | target_cut,
        }

    @tf.function(input_signature=[TEXT], autograph=False)
    def encode(self, text):
        ids = padded(self._encode(text)[0])
        return {"ids": ids, "mask": ids != 0}

    @property
    def limits(self):
        return (
            f"The model reads the first {self.longest - 1:,} subwords of a text. Of a "
            "longer one `truncated` is true. A translation has at most "
            f"{self._settings.extra_length} subwords more than what was read. `score` "
            f"reads the first {self.longest - 1:,} subwords of a translation, too."
        )

    def answer(self, outputs):
        """`Translation`, see `TextModel`."""
        return Translation(
            outputs["translation"].decode(),
            float(outputs["score"]),
            bool(outputs["truncated"]),
        )

    def _numbers(self, length):
        """Of the largest array of a search: scores, a cache's keys, logits."""
        beams = self._settings.beam_size
        keys = 2 * self._hidden_dim * (length + self._settings.extra_length)
        return tf.reduce_max(
            [
                self.num_heads * length**2,
                beams * keys,
                beams * self._vocabulary_size,
                4 * self._hidden_dim * length,
            ]
        )

    def _log_probs(self, sources, targets):
        starts = tf.fill([tf.shape(targets)[0], 1], START)
        real = targets != 0
        before = tf.where(real, tf.concat([starts, targets[:, :-1]], axis=1), 0)
        with self._scope():
            logits = tf.cast(self._logits(sources, before), tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
        return -tf.reduce_sum(tf.where(real, losses, 0.0), axis=1)
