"""Text to source ids, source ids to hypotheses, and these to text, in any graph."""

from collections.abc import Sequence

import tensorflow as tf

from data.tokenizers.subwords import END, START
from decoding.beam_search import Hypotheses, beam_search

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
    source_cache = model.source_cache(rows)

    def step(tokens, cache, position):
        return model.step(tokens, source_cache, cache, position)

    return beam_search(
        step,
        model.empty_cache(batch_size, settings.beam_size),
        # A blank text, of which there is nothing to translate, holds up nobody.
        tf.where(lengths > 1, lengths + extra, 1),
        length + extra if static_shapes else None,
        settings.beam_size,
        settings.length_penalty,
        START,
        END,
    )


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
