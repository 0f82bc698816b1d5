"""Attention by locality-sensitive hashing, Kitaev et al. 2020, section 2."""

import numpy as np

from tests.models.dense import masked_softmax


def kernel(drawn):
    """Queries that are keys too; a softmax over what any round shows, each key once."""
    queries = drawn.queries
    keys = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    scores = drawn.scale * queries @ keys.swapaxes(-1, -2)
    reach = _behind if drawn.causal else _in_chunks
    shown = np.zeros(scores.shape, bool)
    for text, head in np.ndindex(scores.shape[:2]):
        for number in range(drawn.hyperparameters["rounds"]):
            buckets = _buckets(keys[text, head], drawn.operator.rotations, number)
            buckets[~drawn.mask[text]] = buckets.max() + 1
            shown[text, head] |= reach(buckets, drawn.hyperparameters["chunk"])
    shown &= drawn.visible()
    # A token sees itself only where there is nothing else: "causal masking for
    # shared-QK attention".
    itself = np.eye(scores.shape[-1], dtype=bool)
    is_alone = ~(shown & ~itself).any(axis=-1, keepdims=True)
    return masked_softmax(scores, shown & (~itself | is_alone))


def _buckets(keys, rotations, number):
    """Of a round: argmax of [x R, -x R], for several R as digits of one number."""
    buckets = np.zeros(len(keys), int)
    for rotation in rotations:
        turned = keys @ rotation[:, number].astype("float64")
        turned = np.concatenate([turned, -turned], axis=-1)
        buckets = buckets * turned.shape[-1] + turned.argmax(axis=-1)
    return buckets


def _in_chunks(buckets, size):
    """Equation 5: of the query's bucket, what lies in its chunk or the one before."""
    chunks = np.empty(len(buckets), int)
    chunks[np.argsort(buckets, kind="stable")] = np.arange(len(buckets)) // size
    steps = chunks[:, None] - chunks
    return (buckets[:, None] == buckets) & ((steps == 0) | (steps == 1))


def _behind(buckets, size):
    """Of the query's bucket, itself and as many tokens before it as a chunk has.

    Chunks as printed would show which buckets later tokens have.
    """
    reached = np.eye(len(buckets), dtype=bool)
    for query, bucket in enumerate(buckets):
        before = np.flatnonzero(buckets[:query] == bucket)
        reached[query, before[-size:]] = True
    return reached
