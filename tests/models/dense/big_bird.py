"""Window, global and random blocks, Zaheer et al. 2020, section 2 and appendix D."""

import numpy as np

from tests.models.dense import softmax


def kernel(drawn):
    """A softmax over the union of the three, in which a key stands once."""
    scores = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)
    size = drawn.hyperparameters["block"]
    blocks = np.arange(scores.shape[-1]) // size
    allowed = _blocks(drawn, blocks.max() + 1)
    return softmax(scores, drawn.visible() & allowed[:, blocks][:, :, blocks])


def _blocks(drawn, count):
    """Which blocks of keys a block of queries attends to, (heads, blocks, blocks)."""
    allowed = np.zeros((drawn.queries.shape[1], count, count), bool)
    globals_ = drawn.hyperparameters["global_blocks"]
    reach = drawn.hyperparameters["window"] // 2
    for i in range(count):
        allowed[:, i, max(0, i - reach) : i + reach + 1] = True
    allowed[:, :, :globals_] = True
    allowed[:, :globals_] = True
    for head, rows in enumerate(drawn.operator.random_blocks(count)):
        for i, chosen in enumerate(rows):
            allowed[head, i, chosen] = True
    return allowed
