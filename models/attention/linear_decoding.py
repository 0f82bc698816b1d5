"""Decoding with linear attention: states of a size that no length changes."""

from typing import Any, NamedTuple

from keras import ops

from models.attention.cache import State
from models.attention.heads import merge_heads, split_heads
from models.attention.linear_safe import (
    FLOOR,
    Keys,
    Sums,
    divided,
    largest,
    log,
    read,
    sums_of,
    with_ones,
)


class LinearStep(NamedTuple):
    """What a position's depths share, and the cache.

    Attributes:
      queries: log phi(q), (batch, beams, heads, f).
      keys: list of b^l + log phi(k), likewise, one a depth.
      cache: list of `State`, one a depth: [S, z, M], (batch, beams, heads, f, v + 2),
        in float32. See `linear_safe.Sums`.
    """

    queries: Any
    keys: list
    cache: list


def empty_cache(batch_size, beams, heads, features, size, depths) -> list:
    """Of no tokens yet."""
    shape = (batch_size, beams, heads, features)
    sums = ops.zeros((*shape, size + 1), "float32")
    maxima = ops.full((*shape, 1), FLOOR, "float32")
    empty = ops.concatenate([sums, maxima], axis=-1)
    return [State(empty) for _ in range(depths)]


def step(queries, keys: Keys, cache) -> LinearStep:
    """The `LinearStep` of features (batch, heads, beams, f) of a position."""
    logs = _beams_first(log(keys.features))
    biases = _beams_first(ops.cast(keys.biases, "float32"))
    depths = biases.shape[-1]
    own = [logs + bias for bias in ops.split(biases, depths, axis=-1)]
    return LinearStep(_beams_first(log(queries)), own, cache)


def attend_step(state: LinearStep, depth, values):
    """What is attended at a depth, (batch, beams, d), and the next `LinearStep`."""
    heads = state.queries.shape[2]
    batch, beams, width = ops.shape(values)
    kept, logs = state.cache[depth].value, state.keys[depth][..., None]
    sums, before = kept[..., :-1], kept[..., -1:]
    maxima = ops.maximum(before, logs)
    own = with_ones(ops.reshape(values, (batch, beams, heads, 1, width // heads)))
    sums = ops.exp(before - maxima) * sums + ops.exp(logs - maxima) * own
    weights = state.queries + maxima[..., 0]
    weights = ops.exp(weights - largest(weights, axis=-1))
    attended = divided(ops.einsum("bnhf,bnhfv->bnhv", weights, sums))
    attended = ops.reshape(attended, (batch, beams, width))
    cache = list(state.cache)
    cache[depth] = State(ops.concatenate([sums, maxima], axis=-1))
    return ops.cast(attended, values.dtype), state._replace(cache=cache)


def memory(keys: Keys, values) -> Sums:
    """The `Sums` of a source at all depths, (batch, heads, L, …).

    Args:
      keys: of the source, with biases of all depths.
      values: (batch, source, d), those of every depth.
    """
    heads = keys.features.shape[1]
    values = split_heads(values, heads)[:, :, None]
    biases = ops.expand_dims(ops.einsum("bhml->bhlm", keys.biases), -1)
    return sums_of(Keys(keys.features[:, :, None], biases), values)


def attend_to_memory(queries, memory: Sums) -> list:
    """What each depth attends, (batch, beams, d) each, of (batch, heads, beams, f)."""
    attended = read(queries[:, :, None], memory)
    depths = attended.shape[2]
    return [merge_heads(attended[:, :, depth]) for depth in range(depths)]


def _beams_first(x):
    return ops.einsum("bhns->bnhs", x)
