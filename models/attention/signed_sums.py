"""The safe evaluation of linear attention with features of either sign.

Each weight is relative to the largest that its row sees, so nothing that matters can
underflow. Beside phi(k), a key has its share in the mass D w that bounds a row's sum
from below: 1, or what a gate lets in (`models.attention.rfa`).
"""

from typing import Any, NamedTuple

from keras import ops

from models.attention.causal_chunks import chunks, earlier
from models.attention.heads import (
    MASKED,
    is_future,
    largest,
    transpose,
    transposed_product,
)
from models.attention.pieces import joined
from models.attention.safe_sums import divided, with_ones
from models.gradients import copies


class Sums(NamedTuple):
    """[S, z] of keys, with a last row of their shares.

    Attributes:
      values: sum_j e^(b_j - M) [phi(k_j), share_j] [V_j, 1], (…, f + 1, v + 1).
      maxima: M = max_j b_j, (…, 1, 1).
    """

    values: Any
    maxima: Any


def least_mean(features) -> float:
    """What a row's sum is at least, relative to its mass: m/sqrt(2m) for 2m features,
    whose products are m times an estimate."""
    return (features.shape[-1] / 4) ** 0.5


def shares(keys, decays=None):
    """The share of each key in the mass, 1 - g, (…, 1) of keys (…, f).

    Args:
      decays: log g, (…, 1); None where the share is 1.
    """
    return ops.ones_like(keys[..., :1]) if decays is None else -ops.expm1(decays)


def sums_of(keys, biases, values) -> Sums:
    """The `Sums` over all keys, in float32.

    Args:
      keys: with their shares, (…, keys, f + 1).
      biases: b, (…, keys, 1), `MASKED` where a key must not be seen.
    """
    maxima = largest(biases, axis=-2)
    weighted = ops.exp(biases - maxima) * with_ones(values)
    return Sums(transposed_product(keys, weighted), maxima)


def read(queries, sums: Sums):
    """What queries attend, of features (…, n, f): (…, n, v)."""
    products = ops.matmul(queries, sums.values[..., :-1, :])
    return bounded_quotient(products, sums.values[..., -1:, -1:], least_mean(queries))


def bounded_quotient(products, mass, least):
    """num / max(den, least mass) of [num, den]; 0 where nothing was seen."""
    denominators = ops.maximum(products[..., -1:], least * mass)
    return divided(ops.concatenate([products[..., :-1], denominators], axis=-1))


def attend(inputs, biases, values, causal: bool):
    """One read: (batch, heads, n, v) of values (batch, heads, m, v), in float32.

    Args:
      inputs: features of queries, causally as many as keys, and of keys; and log g,
        (batch, heads, m, 1), where sums pass gates.
      biases: b, (batch, heads, m, 1), `MASKED` where a key must not be seen.
    """
    inputs = [ops.cast(x, "float32") for x in (*inputs, biases, values)]
    queries, keys, *decays, biases, values = inputs
    keys = ops.concatenate([keys, shares(keys, *decays)], axis=-1)
    if not causal:
        return read(queries, sums_of(keys, biases, values))
    length = ops.shape(keys)[2]
    decays = decays[0] if decays else ops.zeros_like(biases)
    queries, keys, values, decays = map(chunks, (queries, keys, values, decays))
    biases = chunks(biases, MASKED)
    all_keys, features, key_shares = copies(keys, 3)
    passed, rows, columns, left, last = copies(ops.cumsum(decays, axis=3), 5)
    all_passed = last[..., -1:, :]
    # Within the chunk, (…, C, C).
    inside = rows - transpose(columns) + transpose(biases)
    inside = ops.where(is_future(*ops.shape(inside)[-2:]), MASKED, inside)
    # Of all chunks before.
    of_chunks = sums_of(all_keys, biases + all_passed - left, values)
    ends = ops.cumsum(all_passed[..., 0], axis=2)  # (batch, heads, chunks, 1)
    starts = ops.concatenate([ops.zeros_like(ends[:, :, :1]), ends[:, :, :-1]], axis=2)
    maxima = starts - transpose(ends) + transpose(of_chunks.maxima[..., 0])
    maxima = ops.where(earlier(ends), maxima, MASKED)
    before = largest(maxima, axis=3)
    sums = ops.einsum("bhce,bhefv->bhcfv", ops.exp(maxima - before), of_chunks.values)
    # A row's weights on the keys of its chunk and on those before, relative to the
    # largest.
    outside = before[..., None] + passed
    most = largest(ops.concatenate([inside, outside], axis=-1), axis=-1)
    weights, outside = ops.exp(inside - most), ops.exp(outside - most)
    within = ops.matmul(queries, transpose(features[..., :-1])) * weights
    products = ops.matmul(within, with_ones(values))
    products += outside * ops.matmul(queries, sums[..., :-1, :])
    mass = ops.matmul(weights, key_shares[..., -1:]) + outside * sums[..., -1:, -1:]
    return joined(bounded_quotient(products, mass, least_mean(queries)), length)
