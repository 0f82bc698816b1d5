"""Window, global and random blocks, Zaheer et al. 2020, section 2 and appendix D."""

import numpy as np

from tests.models.dense import masked_softmax


def kernel(drawn):
    """A softmax over the union of the three, in which a key stands once."""
    scores = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)
    blocks = np.arange(scores.shape[-1]) // drawn.hyperparameters["block"]
    met = np.zeros(scores.shape, bool)
    for text, real in enumerate(drawn.mask):
        real_blocks = set(blocks[real])
        for head in range(scores.shape[1]):
            for query, block in enumerate(blocks):
                seen = _met(drawn, head, block, blocks.max() + 1, real_blocks)
                met[text, head, query] = np.isin(blocks, list(seen))
    return masked_softmax(scores, drawn.visible() & met)


def _met(drawn, head, block, count, real_blocks):
    """Blocks of keys that a block of queries attends to."""
    every = range(count)
    num_global = drawn.hyperparameters["global_blocks"]
    if block < num_global:
        return set(every)
    width = drawn.hyperparameters["window_blocks"]
    start = block - width // 2
    met = set(range(num_global)) | (set(range(start, start + width)) & set(every))
    # What is drawn at random is drawn among other blocks that have a token.
    priorities = drawn.operator.priorities(count)[head, block]
    candidates = sorted(real_blocks - met, key=lambda index: -priorities[index])
    return met | set(candidates[: drawn.hyperparameters["random_blocks"]])
