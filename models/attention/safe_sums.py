"""The safe evaluation of linear attention, by logarithms.

Each feature has a maximum of its own over the keys, and so has each query over its
features and keys, so nothing that matters to a row can underflow. Logarithms of what
must not be seen are far below `heads.LOWEST`, and every maximum is at least that, so
exp(logarithm - maximum) is 0 for them.
"""

from typing import Any, NamedTuple

from keras import ops

from models.attention.causal_chunks import chunks, earlier
from models.attention.heads import MASKED, largest, transposed_product
from models.attention.pieces import joined


class Sums(NamedTuple):
    """[S, z] of keys, each feature relative to its own maximum.

    Attributes:
      values: sum_j e^(b_j - M_f) phi(k_j)_f [V_j, 1], (batch, heads, f, v + 1).
      maxima: M_f = max_j (b_j + log phi(k_j)_f), (batch, heads, 1, f).
    """

    values: Any
    maxima: Any


def sums_of(keys, biases, values) -> Sums:
    """The `Sums` of one depth over all keys, in float32.

    Args:
      keys: phi(k), (…, keys, f), not negative.
      biases: b^l, (…, keys, 1), `MASKED` where a key must not be seen.
    """
    logs = log(keys) + ops.cast(biases, "float32")
    maxima = largest(logs, axis=-2)
    return Sums(transposed_product(ops.exp(logs - maxima), with_ones(values)), maxima)


def read(queries, sums: Sums):
    """What queries attend, of features (batch, heads, n, f): (batch, heads, n, v)."""
    logs = log(queries) + sums.maxima
    weights = ops.exp(logs - largest(logs, axis=-1))
    return divided(ops.matmul(weights, sums.values))


def attend(queries, keys, biases, values, causal: bool):
    """One depth: (batch, heads, n, v) of values (batch, heads, m, v), in float32.

    Args:
      queries, keys: features, (batch, heads, n, f) and (batch, heads, m, f).
      biases: b^l, (batch, heads, m, 1), `MASKED` where a key must not be seen.
    """
    if not causal:
        return read(queries, sums_of(keys, biases, values))
    length = ops.shape(queries)[2]
    queries, keys = chunks(queries), chunks(keys)
    values = chunks(ops.cast(values, "float32"))
    biases = chunks(ops.cast(biases, "float32"), MASKED)
    # Within the chunk, (..., C, C).
    inside = ops.tril(ops.matmul(queries, ops.swapaxes(keys, -1, -2)))
    inside = log(inside) + ops.swapaxes(biases, -1, -2)
    logs, rows = inside, with_ones(values)
    if inside.shape[2] != 1:
        # Of all chunks before: each feature's maximum, and sums relative to it.
        of_chunks = sums_of(keys, biases, values)
        maxima = of_chunks.maxima[:, :, :, 0]  # (batch, heads, chunks, f)
        maxima = ops.where(earlier(maxima)[..., None], maxima[:, :, None], MASKED)
        before = largest(maxima, axis=3)  # (batch, heads, chunks, 1, f)
        factors = ops.exp(maxima - before)
        sums = ops.einsum("bhcef,bhefv->bhcfv", factors, of_chunks.values)
        # A row's softmax over the keys of its chunk and the features of those before.
        logs = ops.concatenate([logs, log(queries) + before], axis=-1)
        rows = ops.concatenate([rows, sums], axis=-2)
    weights = ops.exp(logs - largest(logs, axis=-1))
    return joined(divided(ops.matmul(weights, rows)), length)


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
