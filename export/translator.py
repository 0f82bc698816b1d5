"""Translations of texts."""

from typing import NamedTuple

import tensorflow as tf
from ml_collections import ConfigDict

from data.tokenizers.subwords import START
from decoding.beam_search import IMPOSSIBLE
from decoding.translation import decode, encode, search
from export.signatures import TEXT, signature
from export.text_model import TextModel

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
      config: the `model` part of a config.
    """

    signatures = (*TextModel.signatures, "n_best", "score")
    main_output = "translation"
    scored = ("text", "translation")

    def __init__(self, model, tokenizer, settings, longest, config, dtype="float32"):
        super().__init__(model, tokenizer, dtype)
        self.longest = longest
        self._config = ConfigDict(config)  # not a dict, which TensorFlow would track
        self._settings = settings
        self._decode = lambda tokens: decode(tokenizer, tokens)
        self._search = lambda rows: search(model, rows, settings, static_shapes=False)
        self._logits = lambda rows, before: model(rows, before, training=False)
        self._vocabulary_size = tokenizer.vocabulary_size

    @signature(TEXT)
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

    @signature(TEXT)
    def n_best(self, text):
        """The best translations of each text, as many as there are beams.

        Returns:
          `translations`, string [batch, beams], and `scores`, float32 [batch, beams]:
          those that have ended first, then those that the longest length has cut; each
          from the best. A score of -1e9 belongs to no translation. `truncated`, bool
          [batch].
        """
        sources, truncated = self._read(text)

        def best(rows):
            hypotheses = self._search(rows)
            return self._decode(hypotheses.tokens), hypotheses.scores

        shape = [None, self._settings.beam_size]
        translations, scores = self._in_batches(
            best,
            [sources],
            [tf.TensorSpec(shape, tf.string), tf.TensorSpec(shape, tf.float32)],
            self._numbers,
            self._settings.batch_size,
        )
        blank = (sources.row_lengths() == 1)[:, None]
        no_others = tf.constant([[0.0] + [IMPOSSIBLE] * (shape[1] - 1)])
        return {
            "translations": tf.where(blank, "", translations),
            "scores": tf.where(blank, no_others, scores),
            "truncated": truncated,
        }

    @signature(TEXT, TRANSLATION)
    def score(self, text, translation):
        """What the model thinks of given translations.

        Returns:
          `log_prob`, float32 [batch], of each translation and its end; `tokens`, int32
          [batch], how many these are; `truncated`, bool [batch], whether text or
          translation was cut.
        """
        sources, source_cut = self._read(text)
        targets, target_cut = self._read(translation)
        (log_prob,) = self._in_batches(
            lambda *pairs: [self._log_probs(*pairs)],
            [sources, targets],
            [tf.TensorSpec([None], tf.float32)],
            self._numbers_of_scoring,
            self._settings.batch_size,
        )
        return {
            "log_prob": log_prob,
            "tokens": tf.cast(targets.row_lengths(), tf.int32),
            "truncated": source_cut | target_cut,
        }

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

    def _read(self, text):
        return encode(self._tokenize, text, self.longest)

    def _numbers(self, length):
        """Of the largest array of a search from a source of this length."""
        config, beams = self._config, self._settings.beam_size
        slots = beams * (length + self._settings.extra_length)
        depths = config.get("num_depths", 1)
        return tf.reduce_max(
            [
                config["num_heads"] * length**2,  # attention of the encoder
                config["ffn_dim"] * length,
                2 * config["hidden_dim"] * slots,  # keys of a cache
                config["num_heads"] * depths * beams * slots,  # attention of a step
                beams * self._vocabulary_size,  # logits
            ]
        )

    def _numbers_of_scoring(self, length):
        """Of the largest array where neither text nor translation is longer."""
        config = self._config
        rows = [config["num_heads"] * length, config["ffn_dim"], self._vocabulary_size]
        return tf.reduce_max(rows) * length

    def _log_probs(self, sources, targets):
        starts = tf.fill([tf.shape(targets)[0], 1], START)
        real = targets != 0
        before = tf.where(real, tf.concat([starts, targets[:, :-1]], axis=1), 0)
        logits = tf.cast(self._logits(sources, before), tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
        return -tf.reduce_sum(tf.where(real, losses, 0.0), axis=1)
