"""Beam search over a step function with a cache."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from decoding.top_k import top_k
from models.attention.cache import (
    capacity,
    grow,
    hand_on,
    longer,
    period,
    pick,
    settle,
)

IMPOSSIBLE = -1e9


class Hypotheses(NamedTuple):
    """What a search found: finished hypotheses first, each group from its best.

    Attributes:
      tokens: int32 (batch, beams, length), the end token included, then padding.
      scores: float32 (batch, beams): log-probability over the length penalty;
        `IMPOSSIBLE` where a small vocabulary leaves fewer hypotheses than beams.
    """

    tokens: Any
    scores: Any


class _Search(NamedTuple):
    """State between two positions. Beams are sorted, the best first.

    Attributes:
      position: scalar, the next one.
      active: bool (batch,), sentences still searched.
      alive: int32 (batch, beams, positions), unfinished hypotheses.
      log_probs: (batch, beams), theirs.
      finished: int32 (batch, beams, positions), hypotheses with their end.
      scores: (batch, beams), theirs; `IMPOSSIBLE` where there is none yet.
      cache: of the step function.
    """

    position: Any
    active: Any
    alive: Any
    log_probs: Any
    finished: Any
    scores: Any
    cache: Any


def length_penalty(length, alpha: float):
    """((5 + length) / 6)^alpha (Wu et al. 2016); a length counts the end token."""
    return ((5.0 + ops.cast(length, "float32")) / 6.0) ** alpha


def beam_search(
    step: Callable,
    cache,
    max_lengths,
    max_length: int | None = None,
    beam_size: int = 4,
    alpha: float = 0.6,
    start: int = 2,
    end: int = 3,
) -> Hypotheses:
    """Searches for the targets of highest log-probability / length penalty.

    Each position extends every alive hypothesis and keeps the best `beam_size` with
    and without an end. A sentence is done when no alive hypothesis can reach the
    worst of `beam_size` finished ones, or at its longest length; what is alive then
    fills the ranks that no finished hypothesis has taken. A sentence's result does
    not depend on the others of the batch. One beam is greedy search.

    Args:
      step: function of tokens (batch, beams), the cache and the position that returns
        the logits of the next token (batch, beams, vocabulary) and the new cache, as
        `EncoderDecoder.step`.
      cache: empty, see `models.attention.cache`; grown as targets do.
      max_lengths: int32 (batch,), the longest target of each sentence, end included,
        from 1.
      max_length: the largest that max_lengths may hold; sets the shapes, all of them
        static if that of max_lengths is. None where shapes may follow the data: one
        graph then serves every batch, but XLA cannot compile it.
      beam_size: hypotheses alive at a time, and returned.
      alpha: of the length penalty, from 0.
      start, end: token ids. Neither start nor padding (0) is ever produced.

    Returns:
      `Hypotheses`.

    Raises:
      ValueError: if beam_size is below 1 or alpha below 0.
    """
    if beam_size < 1:
        raise ValueError(f"beam_size must be at least 1, got {beam_size}")
    if alpha < 0:
        raise ValueError(f"alpha must be at least 0, got {alpha}")
    (batch,) = ops.shape(max_lengths)
    empty = ops.zeros((batch, beam_size, 0), "int32")
    first = ops.arange(beam_size) == 0  # all beams are one at the start
    search = _Search(
        position=ops.zeros((), "int32"),
        active=ops.ones((batch,), "bool"),
        alive=empty,
        log_probs=ops.tile(ops.where(first, 0.0, IMPOSSIBLE)[None], (batch, 1)),
        finished=empty,
        scores=ops.full((batch, beam_size), IMPOSSIBLE, "float32"),
        cache=cache,
    )
    arguments = (step, max_lengths, alpha, start, end)
    if max_length is None:
        search = _in_any_shape(search, *arguments)
    else:
        search = _in_static_shapes(search, max_length, *arguments)
    return _results(search, alpha)


def _in_static_shapes(search, max_length, *arguments):
    filled = 0
    while filled < max_length:
        filled = capacity(search.cache, filled, max_length)
        search = _fill(_grown(search, filled), filled, *arguments)
    alive, finished = (x[:, :, :max_length] for x in (search.alive, search.finished))
    return search._replace(alive=alive, finished=finished)


def _in_any_shape(search, step, max_lengths, *arguments):
    # Where the lengths are constants, TensorFlow would fix shapes that change in the
    # loop below. It does not look into this one.
    longest = ops.fori_loop(0, 1, lambda _, longest: longest, ops.max(max_lengths))

    def fill(search):
        positions = capacity(search.cache, search.position, longest)
        search = _grown(search, positions)
        return _fill(search, positions, step, max_lengths, *arguments)

    # With room for as many positions as there are: of no static size.
    search = _grown(search, longest * 0)
    return _while(lambda search: ops.any(search.active), fill, search)


def _while(condition, body, search):
    """`ops.while_loop` of functions of a `_Search`."""
    return _Search(
        *ops.while_loop(
            lambda *search: condition(_Search(*search)),
            lambda *search: tuple(body(_Search(*search))),
            tuple(search),
        )
    )


def _grown(search, positions):
    """With room for so many positions."""
    return search._replace(
        alive=longer(search.alive, positions, axis=2),
        finished=longer(search.finished, positions, axis=2),
        cache=grow(search.cache, positions),
    )


def _fill(search, positions, *arguments):
    """Searches until so many positions are filled, or no sentence is left."""
    every = period(search.cache, positions)

    def before(stop):
        return lambda search: ops.logical_and(
            search.position < stop, ops.any(search.active)
        )

    def fill_period(search):
        stop = (search.position // every + 1) * every
        search = _while(before(stop), lambda x: _advance(x, *arguments), search)
        return search._replace(cache=settle(search.cache, stop))

    return _while(before(positions), fill_period, search)


def _advance(search, step, max_lengths, alpha, start, end):
    position = search.position
    _, beams, length = ops.shape(search.alive)
    now = ops.arange(length) == position
    before = ops.arange(length) == position - 1
    tokens = ops.sum(ops.where(before, search.alive, 0), axis=-1)
    tokens = ops.where(position == 0, start, tokens)
    logits, cache = step(tokens, search.cache, position)
    # Twice as many as beams: even if all beams' ends are among them, enough go on.
    # A single beam takes the best token, be it the end: greedy search.
    count = 2 * beams if beams > 1 else 1
    log_probs, parents, tokens = _candidates(
        logits, search.log_probs, count, (0, start)
    )
    extended = ops.where(now, tokens[..., None], pick(search.alive, parents))
    ends = tokens == end

    scores = log_probs / length_penalty(position + 1, alpha)
    exists = ops.logical_and(ends, log_probs > IMPOSSIBLE / 2)
    scores = ops.where(exists, scores, IMPOSSIBLE)
    scores = ops.concatenate([search.scores, scores], axis=1)
    scores, best = ops.top_k(scores, beams)
    finished = pick(ops.concatenate([search.finished, extended], axis=1), best)
    log_probs, survivors = ops.top_k(ops.where(ends, IMPOSSIBLE, log_probs), beams)
    alive = pick(extended, survivors)
    parents = pick(parents, survivors)

    def if_active(new, old):
        inner = tuple(range(1, len(new.shape)))
        return ops.where(ops.expand_dims(search.active, inner), new, old)

    search = search._replace(
        position=position + 1,
        alive=if_active(alive, search.alive),
        log_probs=if_active(log_probs, search.log_probs),
        finished=if_active(finished, search.finished),
        scores=if_active(scores, search.scores),
        cache=hand_on(cache, search.cache, parents, search.active),
    )
    # Log-probabilities only fall, and no later penalty is larger than the last.
    bound = search.log_probs[:, 0] / length_penalty(max_lengths, alpha)
    can_win = bound > search.scores[:, -1]
    active = ops.logical_and(can_win, search.position < max_lengths)
    return search._replace(active=ops.logical_and(search.active, active))


def _candidates(logits, log_probs, count, forbidden):
    """The best extensions: log-probability, parent beam and token, (batch, count)."""
    logits = ops.cast(logits, "float32")
    probabilities = ops.softmax(logits)
    # The best of all are among the best of each beam; some of those are forbidden.
    per_beam = min(count + len(forbidden), logits.shape[-1])
    logits, tokens = top_k(logits, per_beam)
    # The logsumexp of all logits: in less time by softmax than by its own operation.
    best = ops.max(probabilities, axis=-1)
    normalizer = logits[..., 0] - ops.log(best)
    for token in forbidden:
        logits = ops.where(tokens == token, IMPOSSIBLE, logits)
    totals = logits + (log_probs - normalizer)[..., None]
    extensions = log_probs.shape[1] * per_beam
    totals, indices = ops.top_k(ops.reshape(totals, (-1, extensions)), count)
    tokens = ops.reshape(tokens, (-1, extensions))
    parents = ops.cast(indices, "int32") // per_beam
    return totals, parents, pick(tokens, ops.cast(indices, "int32"))


def _results(search, alpha):
    """Finished hypotheses, then alive ones in the ranks that are left."""
    beams = search.scores.shape[1]
    num_finished = ops.sum(
        ops.cast(search.scores > IMPOSSIBLE / 2, "int32"), axis=1, keepdims=True
    )
    ranks = ops.arange(beams, dtype="int32")[None]
    source = ops.where(ranks < num_finished, ranks, beams + ranks - num_finished)
    lengths = ops.sum(ops.cast(search.alive != 0, "int32"), axis=-1)
    alive_scores = ops.where(
        search.log_probs > IMPOSSIBLE / 2,
        search.log_probs / length_penalty(lengths, alpha),
        IMPOSSIBLE,
    )
    tokens = ops.concatenate([search.finished, search.alive], axis=1)
    scores = ops.concatenate([search.scores, alive_scores], axis=1)
    return Hypotheses(pick(tokens, source), pick(scores, source))
