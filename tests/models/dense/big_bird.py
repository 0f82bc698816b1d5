"""Window, global and random blocks, Zaheer et al. 2020, section 2 and appendix D."""

import numpy as np

from tests.models.dense import masked_softmax


def kernel(drawn):
    """A softmax over the union of the three, in which a key stands once."""
    scores = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)
    blocks = np.arange(scores.shape[-1]) // drawn.hyperparameters["block"]
    priorities = drawn.operator.priorities(blocks.max() + 1)
    met = np.zeros(scores.shape, bool)
    for text, head in np.ndindex(scores.shape[:2]):
        real_blocks = set(blocks[drawn.mask[text]])
        for block in range(blocks.max() + 1):
            keys = _met(block, priorities[head, block], real_blocks, drawn)
            met[text, head, blocks == block] = np.isin(blocks, list(keys))
    return masked_softmax(scores, drawn.visible() & met)


def _met(block, priorities, real_blocks, drawn):
    """Blocks of keys that a block of queries attends to."""
    every = set(range(len(priorities)))
    global_blocks = set(range(drawn.hyperparameters["global_blocks"]))
    if block in global_blocks:
        return every
    width = drawn.hyperparameters["window_blocks"]
    start = block - width // 2
    met = global_blocks | (set(range(start, start + width)) & every)
    # What is drawn at random is drawn among further blocks that have a token.
    candidates = sorted(real_blocks - met, key=lambda index: -priorities[index])
    return met | set(candidates[: drawn.hyperparameters["random_blocks"]])
