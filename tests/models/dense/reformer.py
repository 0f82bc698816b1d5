"""Attention by locality-sensitive hashing, Kitaev et al. 2020, section 2."""

import numpy as np

from tests.models.dense import masked_softmax


def kernel(drawn):
    """Queries that are keys too; a softmax over what any round shows, each key once."""
    queries = drawn.queries
    keys = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    scores = drawn.scale * queries @ keys.swapaxes(-1, -2)
    shown = np.zeros(scores.shape, bool)
    reach = _behind if drawn.causal else _in_chunks
    for text, head in np.ndindex(scores.shape[:2]):
        for number in range(drawn.hyperparameters["rounds"]):
            buckets = _buckets(keys[text, head], drawn.operator.rotations, number)
            buckets[~drawn.mask[text]] = buckets.max() + 1
            in_reach = reach(buckets, drawn.hyperparameters["chunk"])
            shown[text, head] |= in_reach & (buckets[:, None] == buckets)
    shown &= drawn.visible()
    # A token's own position counts only where there is nothing else.
    itself = np.eye(scores.shape[-1], dtype=bool)
    alone = ~(shown & ~itself).any(axis=-1, keepdims=True)
    return masked_softmax(scores, shown & (~itself | alone))


def _buckets(keys, rotations, number):
    """Those of a round: argmax of [x R, -x R] for each of the factors of the hash."""
    buckets = np.zeros(len(keys), int)
    for rotation in rotations:
        turned = keys @ rotation[:, number].astype("float64")
        hashes = np.concatenate([turned, -turned], axis=-1).argmax(axis=-1)
        buckets = buckets * 2 * turned.shape[-1] + hashes
    return buckets


def _in_chunks(buckets, size):
    """Equation 5: keys of the query's chunk of sorted tokens and of the one before."""
    chunk = np.empty(len(buckets), int)
    chunk[np.argsort(buckets, kind="stable")] = np.arange(len(buckets)) // size
    steps = chunk[:, None] - chunk
    return (steps == 0) | (steps == 1)


def _behind(buckets, size):
    """Keys at most so many tokens of its bucket before the query."""
    places = np.arange(len(buckets))
    earlier = (buckets[:, None] == buckets) & (places < places[:, None])
    rank = earlier.sum(axis=1)
    return rank[:, None] - rank <= size
