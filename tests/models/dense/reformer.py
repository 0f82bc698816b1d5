"""Attention by locality-sensitive hashing, Kitaev et al. 2020, section 2."""

import numpy as np

from tests.models.dense import softmax


def kernel(drawn):
    """Queries that are keys too; a softmax over what any round shows, each key once."""
    queries = drawn.queries
    keys = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    scores = drawn.scale * queries @ keys.swapaxes(-1, -2)
    shown = np.zeros(scores.shape, bool)
    for text in range(scores.shape[0]):
        for head in range(scores.shape[1]):
            for rotation in drawn.operator.rotations[:, head].astype("float64"):
                order = _sorted(keys[text, head], rotation, drawn.mask[text])
                size = drawn.hyperparameters["bucket"]
                chunk = np.empty(len(order), int)
                chunk[order] = np.arange(len(order)) // size
                steps = chunk[:, None] - chunk
                shown[text, head] |= (steps == 0) | (steps == 1)
    shown &= drawn.visible()
    # A text's own position counts only where there is nothing else (section 2).
    itself = np.eye(scores.shape[-1], dtype=bool)
    alone = ~(shown & ~itself).any(axis=-1, keepdims=True)
    return softmax(scores, shown & (~itself | alone))


def _sorted(keys, rotation, mask):
    """Positions by their buckets, argmax of [x R, -x R], and then as they stand."""
    turned = keys @ rotation
    buckets = np.concatenate([turned, -turned], axis=-1).argmax(axis=-1)
    buckets = np.where(mask, buckets, 2 * rotation.shape[-1])
    return np.argsort(buckets, kind="stable")
