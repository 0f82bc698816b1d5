"""Continuations of texts, and what a model thinks of texts."""

from typing import NamedTuple

import tensorflow as tf
from ml_collections import ConfigDict

from decoding.sampling import chooser, continued, searched
from decoding.translation import LINE_BREAK
from export.signatures import TEXT, padded, signature
from export.text_model import TextModel
from models import attention_kind
from models.attention.operator import STATES


class Continuation(NamedTuple):
    """What follows a text.

    Attributes:
      text: of one line.
      truncated: whether the model saw only the end of the text before it.
    """

    text: str
    truncated: bool

    def __str__(self):
        return self.text


class TextLanguageModel(TextModel):
    """A `LanguageModel` for texts.

    Args:
      model, tokenizer, dtype: see `TextModel`.
      settings: the `decode` part of a config.
      longest: tokens of a segment.
      memory_span: positions that are remembered of the segments before one; None of a
        model that remembers nothing.
      seed: of what is drawn.
      config: the `model` part of a config.
    """

    signatures = (*TextModel.signatures, "score")
    main_output = "continuation"
    scored = ("text",)

    def __init__(
        self,
        model,
        tokenizer,
        settings,
        longest,
        seed,
        config,
        dtype="float32",
        memory_span=None,
    ):
        super().__init__(model, tokenizer, dtype)
        self.longest = longest
        self._span = memory_span
        self._config = ConfigDict(config)  # not a dict, which TensorFlow would track
        self._settings = settings
        self._end = tokenizer.end
        self._decode = tokenizer.decode
        self._vocabulary_size = tokenizer.vocabulary_size
        self._logits = lambda rows, memory=None: model(
            rows, training=False, memory=memory
        )
        self._empty_memory = lambda rows: model.empty_memory(rows, memory_span)
        # Runs from before there was a search lack the field.
        beam_size = settings.get("beam_size")
        follow, how = (
            (searched, beam_size) if beam_size else (continued, chooser(settings, seed))
        )

        def follow_memory(memory, prompts):
            if memory is None:
                cache = model.empty_cache(tf.shape(prompts)[0], beam_size or 1)
            else:
                cache = model.cache_after(memory, beam_size or 1)
            lengths, count = _lengths(prompts), settings.continuation_length
            return follow(model, cache, prompts, lengths, count, how, tokenizer.end)

        self._follow = follow_memory
        is_state = attention_kind(config).memory == STATES
        self._goes_on = memory_span is not None and is_state

    @signature(TEXT)
    def serving_default(self, text):
        """A continuation of each text, up to the end of its line.

        Returns:
          `continuation`, string [batch], one line each; `truncated`, bool [batch].
        """
        ids, truncated = self._read(text)

        def follow(prompts):
            memory = None
            if self._goes_on:
                memory, prompts = self._before_last_segment(prompts)
            tokens = self._follow(memory, prompts)
            following = tf.ragged.boolean_mask(tokens, tokens != 0)
            return [tf.strings.regex_replace(self._decode(following), LINE_BREAK, " ")]

        (continuation,) = self._in_batches(
            follow,
            [tf.concat([self._ends(ids), ids], axis=1)],
            [tf.TensorSpec([None], tf.string)],
            self._numbers,
            self._settings.batch_size,
        )
        return {"continuation": continuation, "truncated": truncated}

    @signature(TEXT)
    def score(self, text):
        """What the model thinks of texts.

        Returns:
          `log_prob`, float32 [batch], of each text and its end; `tokens`, int32
          [batch], how many these are; `truncated`, bool [batch].
        """
        ids = self._tokenize(text)
        truncated = ids.row_lengths() >= self.longest
        if self._span is None:
            ids = ids[:, : self.longest - 1]
        else:
            truncated = tf.zeros_like(truncated)
        targets = tf.concat([ids, self._ends(ids)], axis=1)
        (log_prob,) = self._in_batches(
            lambda rows: [self._log_probs(rows)],
            [targets],
            [tf.TensorSpec([None], tf.float32)],
            self._numbers,
            self._settings.batch_size,
        )
        return {
            "log_prob": log_prob,
            "tokens": tf.cast(targets.row_lengths(), tf.int32),
            "truncated": truncated,
        }

    @property
    def limits(self):
        some = f"{self.longest - 1:,}"
        read = "all" if self._span is not None else f"the first {some}"
        continued = "all" if self._goes_on else f"the last {some}"
        return (
            f"The model continues {continued} tokens of a text, by at most "
            f"{self._settings.continuation_length:,}. `score` reads {read}. "
            "`truncated` is true where that leaves out a part of the text."
        )

    def answer(self, outputs):
        """`Continuation`, see `TextModel`."""
        return Continuation(
            outputs["continuation"].decode(), bool(outputs["truncated"])
        )

    def _read(self, text):
        """See `TextModel`."""
        ids = self._tokenize(text)
        if self._goes_on:
            return ids, tf.zeros_like(ids.row_lengths(), tf.bool)
        return ids[:, 1 - self.longest :], ids.row_lengths() >= self.longest

    def _ends(self, ids):
        return tf.fill([ids.nrows(), 1], self._end)

    def _log_probs(self, targets):
        before = tf.pad(targets[:, :-1], [[0, 0], [1, 0]], constant_values=self._end)
        inputs = tf.where(targets != 0, before, 0)
        if self._span is None:
            return _total(self._logits(inputs), targets)
        total, _ = self._in_segments(inputs, targets)
        return total

    def _before_last_segment(self, prompts):
        """What all segments but the last of each prompt leave, and the last ones."""
        count = (_lengths(prompts) - 1) // self.longest * self.longest
        is_early = tf.range(tf.shape(prompts)[1]) < count[:, None]
        _, memory = self._in_segments(tf.where(is_early, prompts, 0))
        is_last = (prompts != 0) & ~is_early
        return memory, padded(tf.ragged.boolean_mask(prompts, is_last))

    def _in_segments(self, inputs, targets=None):
        """The log-probabilities of targets, if there are any, and what is left."""
        lengths, (rows, columns) = _lengths(inputs), tf.unstack(tf.shape(inputs))
        missing = [[0, 0], [0, -columns % self.longest]]
        inputs = tf.pad(inputs, missing)
        if targets is not None:
            targets = tf.pad(targets, missing)

        def read_segment(start, total, memory):
            segment = slice(start, start + self.longest)
            logits, memory = self._logits(inputs[:, segment], memory)
            if targets is not None:
                total += _total(logits, targets[:, segment])
            return start + self.longest, total, memory

        _, total, memory = tf.while_loop(
            lambda start, *_: start < tf.reduce_max(lengths),
            read_segment,
            (0, tf.zeros([rows]), self._empty_memory(rows)),
            parallel_iterations=1,  # or the memory would be that of several
        )
        return total, memory

    def _numbers(self, length):
        """Of the largest array of a text of this length, or of a segment of it."""
        config, length = self._config, tf.minimum(length, self.longest)
        scores = config["num_heads"] * (length + (self._span or 0))
        rows = [scores, config["ffn_dim"], self._vocabulary_size]
        beams = self._settings.get("beam_size") or 1
        return tf.maximum(tf.reduce_max(rows) * length, beams * self._vocabulary_size)


def _lengths(ids):
    return tf.reduce_sum(tf.cast(ids != 0, tf.int32), axis=1)


def _total(logits, targets):
    """The log-probability of all targets of a row that are not 0."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        targets, tf.cast(logits, tf.float32)
    )
    return -tf.reduce_sum(tf.where(targets != 0, losses, 0.0), axis=1)
