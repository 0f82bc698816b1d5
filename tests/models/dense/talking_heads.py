"""Talking heads, Shazeer et al. 2020, "Talking-Heads Attention"."""

import numpy as np

from tests.models.dense import masked_softmax


def kernel(drawn):
    """One projection of the logits across heads, and one of the softmax's weights."""
    scores = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)
    logits = np.einsum("bknm,kh->bhnm", scores, drawn.weights["score_mix"])
    weights = masked_softmax(logits, drawn.visible())
    return np.einsum("bhnm,hv->bvnm", weights, drawn.weights["weight_mix"])
