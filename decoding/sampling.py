"""Continuing texts token by token."""

from collections.abc import Callable

import tensorflow as tf
from keras import ops

from decoding.beam_search import IMPOSSIBLE, beam_search
from models.attention.cache import capacity, grow, period, settle


def continued(model, cache, prompts, lengths, count: int, choose: Callable, end: int):
    """The tokens that continue each prompt, up to its end.

    A continuation does not depend on the other prompts of a batch, if what `choose`
    chooses does not.

    Args:
      model: `LanguageModel`.
      cache: what it keeps of what comes before the prompts, with one beam.
      prompts: int32 (batch, length), padded with zeros at the end.
      lengths: int32 (batch,), tokens of each, from 1.
      count: the most tokens of a continuation.
      choose: function of logits (batch, vocabulary) and of the position of their token
        that returns the next token, int32 (batch,).
      end: the id that ends a text.

    Returns:
      int32 (batch, length + count), zeros but for the continuations.
    """
    num_positions = ops.shape(prompts)[1] + count
    constants = model.constants()
    cache = grow(cache, capacity(cache, num_positions, num_positions))
    every = period(cache, num_positions)
    places = ops.arange(num_positions)
    given = ops.pad(prompts, [[0, 0], [0, count]])
    ended = ops.zeros(ops.shape(lengths), "bool")

    def advance(position, tokens, ended, cache):
        here = places == position
        now = ops.sum(ops.where(here, tokens, 0), axis=1)
        logits, cache = model.step(now[:, None], constants, cache, position)
        chosen = choose(logits[:, 0], position)
        following = position + 1
        is_new = following >= lengths
        ended = ops.logical_or(ended, ops.logical_and(is_new, chosen == end))
        ended = ops.logical_or(ended, following >= lengths + count)
        writes = ops.logical_and(is_new, ops.logical_not(ended))
        chosen = ops.where(writes, chosen, 0)[:, None]
        is_next = (places == following)[None]
        tokens = ops.where(ops.logical_and(is_next, is_new[:, None]), chosen, tokens)
        return following, tokens, ended, cache

    def before(stop):
        return lambda position, tokens, ended, cache: ops.logical_and(
            position < stop, ops.logical_not(ops.all(ended))
        )

    def advance_a_period(position, tokens, ended, cache):
        stop = (position // every + 1) * every
        state = position, tokens, ended, cache
        position, tokens, ended, cache = ops.while_loop(before(stop), advance, state)
        return position, tokens, ended, settle(cache, position)

    _, tokens, _, _ = ops.while_loop(
        before(num_positions - 1),
        advance_a_period,
        (ops.zeros((), "int32"), given, ended, cache),
    )
    return ops.where(places >= lengths[:, None], tokens, 0)


def searched(model, cache, prompts, lengths, count: int, beam_size: int, end: int):
    """The likeliest continuations that a beam search finds, as `continued` gives them.

    Args:
      model, cache, prompts, lengths, count, end: see `continued`.
      beam_size: hypotheses alive at a time, and beams of the cache.

    Returns:
      int32 (batch, length + count) or fewer columns, zeros but for the continuations.
    """
    constants, num_given = model.constants(), ops.shape(prompts)[1]
    # What stands for the prompt's tokens in hypotheses: an end among them ends nothing.
    filler = 1 if end != 1 else 2

    def step(tokens, cache, position):
        in_prompt = ops.minimum(position, num_given - 1)
        given = ops.take(prompts, in_prompt, axis=1)[:, None]
        is_given, following = position < lengths, position + 1
        tokens = ops.where(is_given[:, None], given, tokens)
        logits, cache = model.step(tokens, constants, cache, position)
        goes_on = following < lengths
        # One that is as long as may be ends for nothing.
        is_forced = ops.logical_or(goes_on, following >= lengths + count)
        forced_token = ops.where(goes_on, filler, end)[:, None, None]
        is_refused = ops.arange(logits.shape[-1]) != forced_token
        forced_logits = ops.cast(is_refused, "float32") * IMPOSSIBLE
        logits = ops.cast(logits, "float32")
        return ops.where(is_forced[:, None, None], forced_logits, logits), cache

    hypotheses = beam_search(
        step,
        cache,
        lengths + count,
        beam_size=beam_size,
        alpha=0,
        # What a search begins with, it never finds; a prompt begins with an end.
        start=-1,
        end=end,
    )
    tokens = ops.pad(hypotheses.tokens[:, 0], [[0, 0], [1, 0]])
    tokens = tokens[:, : num_given + count]
    is_new = ops.arange(ops.shape(tokens)[1]) >= lengths[:, None]
    return ops.where(ops.logical_and(is_new, tokens != end), tokens, 0)


def chooser(settings, seed: int) -> Callable:
    """What chooses the next token: the likeliest, or one that is drawn.

    What is drawn depends on the seed and the position alone.

    Args:
      settings: the `decode` part of a config of language modelling.
      seed: non-negative integer.

    Returns:
      A function of logits (batch, vocabulary) and of a position, see `continued`.
      Padding is never chosen.
    """

    def choose(logits, position):
        logits = tf.cast(logits, "float32")
        # Padding is the first.
        logits = tf.concat(
            [tf.fill([tf.shape(logits)[0], 1], logits.dtype.min), logits[:, 1:]], 1
        )
        if not settings.temperature:
            return tf.argmax(logits, axis=-1, output_type=tf.int32)
        logits = logits / settings.temperature
        if settings.top_k:
            few = min(settings.top_k, logits.shape[-1])
            logits = _at_least(logits, tf.math.top_k(logits, few).values[:, -1:])
        if settings.top_p:
            ordered = tf.sort(logits, direction="DESCENDING")
            before = tf.cumsum(tf.nn.softmax(ordered), axis=-1, exclusive=True)
            chosen = tf.where(before < settings.top_p, ordered, ordered[:, :1])
            logits = _at_least(logits, tf.reduce_min(chosen, axis=-1, keepdims=True))
        # The largest after Gumbel noise is drawn by the softmax of the logits.
        uniform = tf.random.stateless_uniform(
            logits.shape[-1:], [seed, position], minval=1e-20
        )
        noisy = logits - tf.math.log(-tf.math.log(uniform))
        return tf.argmax(noisy, axis=-1, output_type=tf.int32)

    return choose


def _at_least(logits, smallest):
    return tf.where(logits >= smallest, logits, logits.dtype.min)
