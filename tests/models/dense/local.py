"""Band attention: softmax over keys nearer than a window (Lin et al. 2021, 5.1)."""

import numpy as np

from tests.models.dense import masked_softmax, relative


def kernel(drawn):
    """Over keys less than `window` positions away."""
    scores = relative.scores(drawn)
    places = np.arange(scores.shape[-1])
    near = np.abs(places[:, None] - places) < drawn.hyperparameters["window"]
    return masked_softmax(scores, drawn.visible() & near)
