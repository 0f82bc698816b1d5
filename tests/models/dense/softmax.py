"""softmax(Q K^T), Vaswani et al. 2017, section 3.2.1."""

from tests.models.dense import masked_softmax, relative


def kernel(drawn):
    """Over all keys that are visible."""
    scores = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)
    scores = scores + relative.scores(drawn)
    return masked_softmax(scores, drawn.visible())
