"""Inputs of linear attention, and what it should give, in float64.

The n x n matrix is written out.
"""

import numpy as np

from models.attention.heads import MASKED
from models.attention.linear import LinearOperator

BATCH, HEADS, FEATURES, SIZE, DEPTHS = 2, 2, 6, 5, 3


class _Given:
    """Features that are given, and may all be zero."""

    num_features = FEATURES
    may_be_zero = True


def given_features(use="self"):
    """The operator of features that are given."""
    operator = LinearOperator(HEADS, use, 0, "elu1")
    operator.feature_map = _Given()
    return operator


def oracle(queries, keys, biases, values, causal):
    """(depths, batch, heads, n, v): rows of zeros where nothing is seen.

    Args:
      biases: -inf at padding.
      values: (depths, batch, heads, m, v).
    """
    weights = _weights(queries, keys, biases, causal)
    return np.einsum("lbhij,lbhjv->lbhiv", weights, values.astype("float64"))


def _weights(queries, keys, biases, causal):
    queries, keys, biases = (x.astype("float64") for x in (queries, keys, biases))
    products = np.einsum("bhif,bhjf->bhij", queries, keys)
    with np.errstate(divide="ignore"):
        logs = np.log(products) + np.moveaxis(biases, -1, 0)[:, :, :, None]
    if causal:
        seen = np.tril(np.ones(logs.shape[-2:], bool))
        logs = np.where(seen, logs, -np.inf)
    top = logs.max(axis=-1, keepdims=True)
    scores = np.exp(logs - np.where(np.isfinite(top), top, 0))
    total = scores.sum(axis=-1, keepdims=True)
    return scores / np.where(total > 0, total, 1)


def oracle_gradients(queries, keys, biases, values, direction, causal):
    """Of sum(direction * output), by queries, keys, biases and values."""
    weights = _weights(queries, keys, biases, causal)
    slopes = np.einsum("lbhiv,lbhjv->lbhij", direction, values)
    slopes -= (weights * slopes).sum(axis=-1, keepdims=True)
    by_logs = weights * slopes
    products = np.einsum(
        "bhif,bhjf->bhij", *(x.astype("float64") for x in (queries, keys))
    )
    by_products = by_logs.sum(axis=0) / np.where(products > 0, products, 1)
    return [
        np.einsum("bhij,bhjf->bhif", by_products, keys),
        np.einsum("bhij,bhif->bhjf", by_products, queries),
        np.moveaxis(by_logs.sum(axis=-2), 0, -1),
        np.einsum("lbhij,lbhiv->lbhjv", weights, direction),
    ]


def draw(length, spread=1.0, zeros=0.0, padding=0.0, seed=0, num_queries=None):
    """Features, biases with -inf at padding, values; float32.

    Args:
      num_queries: of cross-attention; None for as many as keys.
    """
    random = np.random.default_rng(seed)
    shape = (BATCH, HEADS, length)
    queries, keys = np.exp(random.normal(size=(2, *shape, FEATURES)))
    if num_queries is not None:
        size = (BATCH, HEADS, num_queries, FEATURES)
        queries = np.exp(random.normal(size=size))
    if zeros:
        queries *= random.random(queries.shape) > zeros
        keys *= random.random(keys.shape) > zeros
    biases = random.uniform(-spread, spread, (*shape, DEPTHS))
    hidden = random.random((BATCH, 1, length, 1)) < padding
    biases = np.where(hidden, -np.inf, biases)
    values = random.normal(size=(DEPTHS, *shape, SIZE))
    return [x.astype("float32") for x in (queries, keys, biases, values)]


def ordered(biases, late=True):
    """With 400 more at one end than at the other: the last are the largest if late."""
    slope = np.linspace(-200, 200, biases.shape[2], dtype="float32")[:, None]
    return biases + (slope if late else -slope)


def masked(biases):
    """With `MASKED` for -inf."""
    return np.where(np.isfinite(biases), biases, MASKED).astype("float32")


def assert_near(found, expected, tolerance=1e-5, least=0.0):
    """The tolerance is a share of the largest entry, or of `least` if that is more."""
    scale = max(np.abs(expected).max(), least) or 1
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
