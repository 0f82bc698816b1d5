"""Sparse Sinkhorn attention, Tay et al. 2020 (2002.11296), section 3."""

import numpy as np


def kernel(drawn):
    """One softmax over the query's own block and the one that is sorted there.

    A sorted key is a sum of keys by R, and its value is that sum of values. Weights
    stand on the original keys, so an entry of the sorted block is shared out by R.
    """
    size = drawn.hyperparameters["block"]
    batch, heads, length, _ = drawn.queries.shape
    keys = _cut(drawn.keys * drawn.mask[:, None, :, None], size)
    queries = drawn.scale * _cut(drawn.queries, size)
    order = _order(drawn, size)  # (batch, heads, blocks, blocks)
    count = order.shape[-1]
    matrix = np.zeros((batch, heads, count, size, count, size))
    for i in range(count):
        sorted_keys = np.einsum("bhj,bhjps->bhps", order[:, :, i], keys)
        pair = np.concatenate([keys[:, :, i], sorted_keys], axis=2)
        scores = queries[:, :, i] @ pair.swapaxes(-1, -2)
        entries = np.exp(scores - scores.max(axis=-1, keepdims=True))
        matrix[:, :, i, :, i] += entries[..., :size]
        for j in range(count):
            share = order[:, :, i, j, None, None]
            matrix[:, :, i, :, j] += share * entries[..., size:]
    matrix = matrix.reshape(batch, heads, count * size, count * size)
    return matrix[:, :, :length, :length]


def _order(drawn, size):
    """R of blocks' sums by a learned kernel: its rows and columns, scaled in turns.

    Blocks without a token are sorted among themselves.
    """
    sums = _cut((drawn.x * drawn.mask[..., None])[:, None], size).sum(axis=3)
    count = sums.shape[2]
    scores = (sums @ drawn.weights["sorting"])[..., :count]
    real = _cut(drawn.mask[:, None], size).any(axis=-1)  # (batch, 1, blocks)
    alike = real[..., :, None] == real[..., None, :]
    order = np.exp(scores / drawn.hyperparameters["temperature"]) * alike
    for _ in range(drawn.hyperparameters["iterations"]):
        order = order / order.sum(axis=-1, keepdims=True)
        order = order / order.sum(axis=-2, keepdims=True)
    return order


def _cut(x, size):
    """(batch, heads, length, …) to (batch, heads, blocks, size, …); zeros fill."""
    batch, heads, length, *inner = x.shape
    count = -(-length // size)
    end = np.zeros((batch, heads, count * size - length, *inner), x.dtype)
    x = np.concatenate([x, end], axis=2)
    return x.reshape(batch, heads, count, size, *inner)
