"""Talking-heads attention, Shazeer et al. 2020, section 4."""

import numpy as np

from tests.models.dense import masked_softmax


def kernel(drawn):
    """U of the paper's pseudocode, of as many heads of each kind as there are.

    P_l takes the heads of queries and keys to those of the softmax, P_w these to the
    heads of values: the first index of each is where a number comes from.
    """
    to_softmax, to_values = drawn.weights["score_mix"], drawn.weights["weight_mix"]
    products = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)  # J
    logits = np.zeros_like(products)  # L
    for by_key, by_softmax in np.ndindex(to_softmax.shape):
        logits[:, by_softmax] += to_softmax[by_key, by_softmax] * products[:, by_key]
    weights = masked_softmax(logits, drawn.visible())  # W
    mixed = np.zeros_like(products)  # U
    for by_softmax, by_value in np.ndindex(to_values.shape):
        mixed[:, by_value] += to_values[by_softmax, by_value] * weights[:, by_softmax]
    return mixed
