"""softmax(Q K^T), Vaswani et al. 2017, section 3.2.1."""

from tests.models.dense import masked_softmax


def kernel(drawn):
    """Over all keys that are visible."""
    scores = drawn.scale * drawn.queries @ drawn.keys.swapaxes(-1, -2)
    return masked_softmax(scores, drawn.visible())
