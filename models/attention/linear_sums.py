"""Attention with phi(q) . phi(k) for weights, in time linear in the length.

    out_i = phi(q_i) S / (phi(q_i) z),    [S, z] = sum_j e^(b_j) phi(k_j) [V_j, 1]

over all keys j or, causally, over j <= i. Shapes by head: queries n, keys m, features
f, values v, depths L. docs/attention.md, "Linear form", derives all of it.

Two evaluations give the same. The fast one takes e^(b_j - max b) for weights, shares
between depths what is not of one depth alone, and serves while no row's denominator
comes near zero. The safe one works with logarithms: each feature has a maximum of its
own, and so has each query, so nothing that matters to a row can underflow.
"""

from typing import Any, NamedTuple

from keras import ops

from models.attention.heads import MASKED
from models.products import Product, with_gradients

# Below any logarithm that counts, and far above `MASKED`.
FLOOR = -1e8
# A row's denominator, of weights up to 1, under which smaller weights of it might have
# been lost.
SMALL = 1e-20
# Queries and keys of a causal chunk.
CHUNK = 64


class Keys(NamedTuple):
    """What keys are to all depths.

    Attributes:
      features: phi(k), (batch, heads, keys, f), not negative.
      biases: b^l, (batch, heads, keys, L), `MASKED` where a key must not be seen.
    """

    features: Any
    biases: Any


class LinearState(NamedTuple):
    """What one block's depths share.

    Attributes:
      queries: phi(q), (batch, heads, n, f).
      keys: `Keys`.
      weights: list of e^(b^l - max), (batch, heads, m, 1).
      inverses: list of 1 / (phi(q) z^l), (batch, heads, n, 1); 0 for a query that sees
        no feature.
      within: phi(q) phi(k)^T within each causal chunk, (batch, heads, chunks, C, C);
        None if not causal.
      safe: scalar, whether the fast evaluation serves.
    """

    queries: Any
    keys: Any
    weights: list
    inverses: list
    within: Any
    safe: Any


def start(queries, keys: Keys, causal: bool) -> LinearState:
    """What the depths share; the features of padded keys count for nothing."""
    biases = keys.biases
    num_depths = biases.shape[-1]
    weights = ops.exp(biases - _largest(biases, axis=2))
    # One more column counts the keys that are seen: where there are none, the
    # denominators are zero for good.
    seen = ops.cast(biases[..., :1] > FLOOR, weights.dtype)
    weights = ops.cast(weights, queries.dtype)
    columns = ops.concatenate([weights, ops.cast(seen, queries.dtype)], axis=-1)
    within = _within(queries, keys.features) if causal else None
    sums = weighted_sums(queries, keys.features, columns, within)
    sums = ops.cast(sums, "float32")
    denominators, counts = sums[..., :num_depths], sums[..., num_depths:]
    sound = ops.logical_or(denominators > SMALL, counts <= 0)
    nothing = denominators <= 0
    inverses = ops.where(nothing, 0.0, 1 / ops.where(nothing, 1.0, denominators))
    inverses = ops.cast(inverses, queries.dtype)
    return LinearState(
        queries,
        keys,
        ops.split(weights, num_depths, axis=-1),
        ops.split(inverses, num_depths, axis=-1),
        within,
        ops.stop_gradient(ops.all(sound)),
    )


def attend(state: LinearState, depth: int, values):
    """What a depth attends: (batch, heads, n, v) of values (batch, heads, m, v)."""

    def fast():
        weighted = state.weights[depth] * values
        sums = weighted_sums(state.queries, state.keys.features, weighted, state.within)
        return sums * state.inverses[depth]

    def safe():
        bias = state.keys.biases[..., depth : depth + 1]
        keys = Keys(state.keys.features, bias)
        causal = state.within is not None
        attended = (_safe_causal if causal else _safe)(state.queries, keys, values)
        return ops.cast(attended, values.dtype)

    return ops.cond(state.safe, fast, safe)


def weighted_sums(queries, keys, values, within=None):
    """sum_j phi(q_i) . phi(k_j) values_j: (batch, heads, n, v).

    Args:
      queries, keys: features.
      values: (batch, heads, m, v).
      within: `LinearState.within`, for the sum over j <= i.
    """
    if within is None:
        return ops.matmul(queries, _transposed_times(keys, values))
    length = ops.shape(values)[2]
    queries, keys, values = map(_chunks, (queries, keys, values))
    before = _sums_before(_transposed_times(keys, values))
    sums = ops.matmul(within, values) + ops.matmul(queries, before)
    return _whole(sums, length)


def products(units, length, features, size, depths, causal) -> list[Product]:
    """Matrix products of the fast evaluation, see `models.products`.

    Args:
      units: of batch and heads together.
    """
    found = []
    # Those of all depths' denominators have a column a depth and one more.
    for name, count, columns in (("", depths, size), ("sums: ", 1, depths + 1)):
        found += with_gradients(
            f"{name}keys times values",
            count,
            units,
            (features, length, columns),
            "left",
        )
        found += with_gradients(
            f"{name}queries times sums", count, units, (length, features, columns)
        )
        if causal:
            chunks = units * -(-length // CHUNK)
            sizes = (CHUNK, CHUNK, columns)
            found += with_gradients(f"{name}within chunks", count, chunks, sizes)
    if causal:
        sizes = (CHUNK, features, CHUNK)
        found += with_gradients("chunks", 1, chunks, sizes, "right")
    return found


def _within(queries, keys):
    queries, keys = _chunks(queries), _chunks(keys)
    return ops.tril(ops.matmul(queries, ops.swapaxes(keys, -1, -2)))


def _sums_before(sums):
    """For each chunk the sum over those before it, (batch, heads, chunks, f, v)."""
    before = ops.cumsum(sums, axis=2)[:, :, :-1]
    return ops.concatenate([ops.zeros_like(sums[:, :, :1]), before], axis=2)


def _chunks(x, filler=0):
    """(batch, heads, length, size) to (batch, heads, chunks, C, size)."""
    batch, heads, length, size = ops.shape(x)
    missing = -length % CHUNK
    if not isinstance(missing, int) or missing:
        end = ops.full((batch, heads, missing, size), filler, x.dtype)
        x = ops.concatenate([x, end], axis=2)
    chunks = (length + CHUNK - 1) // CHUNK
    return ops.reshape(x, (batch, heads, chunks, CHUNK, size))


def _whole(x, length):
    batch, heads, chunks, size, width = ops.shape(x)
    return ops.reshape(x, (batch, heads, chunks * size, width))[:, :, :length]


# The safe evaluation. Logarithms of what must not be seen are far below FLOOR, and
# every maximum is at least FLOOR, so exp(logarithm - maximum) is 0 for them.


class Sums(NamedTuple):
    """[S, z] of keys, each feature relative to its own maximum.

    Attributes:
      values: sum_j e^(b_j - M_f) phi(k_j)_f [V_j, 1], (batch, heads, f, v + 1).
      maxima: M_f = max_j (b_j + log phi(k_j)_f), (batch, heads, 1, f).
    """

    values: Any
    maxima: Any


def sums_of(keys: Keys, values) -> Sums:
    """The `Sums` of one depth over all keys, in float32."""
    logs = log(keys.features) + ops.cast(keys.biases, "float32")
    maxima = _largest(logs, axis=-2)
    return Sums(_transposed_times(ops.exp(logs - maxima), with_ones(values)), maxima)


def read(queries, sums: Sums):
    """What queries attend, of features (batch, heads, n, f): (batch, heads, n, v)."""
    logs = log(queries) + sums.maxima
    weights = ops.exp(logs - _largest(logs, axis=-1))
    return divided(ops.matmul(weights, sums.values))


def _safe(queries, keys, values):
    return read(queries, sums_of(keys, values))


def _safe_causal(queries, keys, values):
    length = ops.shape(queries)[2]
    within = log(_within(queries, keys.features))
    values = _chunks(ops.cast(values, "float32"))
    biases = _chunks(ops.cast(keys.biases, "float32"), MASKED)
    # In the chunk, (…, C, C): the key's bias lies along the row.
    within = within + ops.swapaxes(biases, -1, -2)
    own = sums_of(Keys(_chunks(keys.features), biases), values)
    # Of all chunks before: each feature's maximum, and sums relative to it.
    maxima = own.maxima[:, :, :, 0]  # (batch, heads, chunks, f)
    chunks = ops.arange(ops.shape(maxima)[2])
    earlier = (chunks[None, :] < chunks[:, None])[..., None]
    others = ops.where(earlier, maxima[:, :, None], MASKED)
    before = _largest(others, axis=3)  # (batch, heads, chunks, 1, f)
    factors = ops.exp(others - before)
    sums = ops.einsum("bhcef,bhefv->bhcfv", factors, own.values)
    across = log(_chunks(queries)) + before
    # A row's softmax over the keys of its chunk and the features of those before.
    logs = ops.concatenate([within, across], axis=-1)
    weights = ops.exp(logs - _largest(logs, axis=-1))
    values = ops.concatenate([with_ones(values), sums], axis=-2)
    return _whole(divided(ops.matmul(weights, values)), length)


def log(features):
    """log phi in float32, `MASKED` where phi is zero."""
    features = ops.cast(features, "float32")
    positive = features > 0
    logs = ops.log(ops.where(positive, features, 1.0))
    return ops.where(positive, logs, MASKED)


def with_ones(values):
    """[V, 1] in float32."""
    values = ops.cast(values, "float32")
    return ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)


def divided(sums):
    """num / den of [num, den]; 0 where nothing was seen."""
    numerators, denominators = sums[..., :-1], sums[..., -1:]
    nothing = denominators <= 0
    quotients = numerators / ops.where(nothing, 1.0, denominators)
    return ops.where(nothing, 0.0, quotients)


def _largest(x, axis):
    largest = ops.max(x, axis=axis, keepdims=True)
    return ops.stop_gradient(ops.maximum(largest, FLOOR))


def _transposed_times(x, y):
    return ops.matmul(ops.swapaxes(x, -1, -2), y)
