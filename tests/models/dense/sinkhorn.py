"""Sparse Sinkhorn attention, Tay et al. 2020 (2002.11296), section 3."""

import numpy as np


def kernel(drawn):
    """E = exp of scores with the query's own block and with the sorted one.

    A sorted key is a sum of keys by R, and its value is that sum of values. Weights
    stand on the original keys, so an entry of the sorted block is shared out by R.
    """
    size = drawn.hyperparameters["block"]
    batch, heads, length, _ = drawn.queries.shape
    count = -(-length // size)
    real = drawn.mask[:, None, :, None]
    keys = _cut(drawn.keys * real, size)
    order = _sorting(drawn, size)  # (batch, heads, blocks, blocks)
    sorted_keys = np.einsum("bhij,bhjps->bhips", order, keys)
    queries = _cut(drawn.queries, size)
    within = drawn.scale * np.einsum("bhiqs,bhips->bhiqp", queries, keys)
    across = drawn.scale * np.einsum("bhiqs,bhips->bhiqp", queries, sorted_keys)
    largest = np.maximum(within, across).max(axis=-1, keepdims=True)
    within, across = np.exp(within - largest), np.exp(across - largest)
    matrix = np.zeros((batch, heads, count, size, count, size))
    for i in range(count):
        matrix[:, :, i, :, i] += within[:, :, i]
        for j in range(count):
            share = order[:, :, i, j, None, None]
            matrix[:, :, i, :, j] += share * across[:, :, i]
    matrix = matrix.reshape(batch, heads, count * size, count * size)
    return matrix[:, :, :length, :length]


def _sorting(drawn, size):
    """R: blocks' sums by a learned kernel, normalised in turns."""
    x = drawn.x * drawn.mask[..., None]
    sums = _cut(x[:, None], size).sum(axis=3)[:, 0]  # (batch, blocks, d)
    count = sums.shape[1]
    scores = np.einsum("bid,hdj->bhij", sums, drawn.weights["sorting_kernel"])
    order = np.exp(scores[..., :count] / drawn.hyperparameters["temperature"])
    for _ in range(drawn.hyperparameters["iterations"]):
        order = order / order.sum(axis=-1, keepdims=True)
        order = order / order.sum(axis=-2, keepdims=True)
    return order


def _cut(x, size):
    """(batch, heads, length, …) to (batch, heads, blocks, size, …); zeros fill."""
    batch, heads, length, *rest = x.shape
    count = -(-length // size)
    end = np.zeros((batch, heads, count * size - length, *rest))
    x = np.concatenate([x, end], axis=2)
    return x.reshape(batch, heads, count, size, *rest)
