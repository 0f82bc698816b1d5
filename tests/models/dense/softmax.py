"""softmax(Q K^T), Vaswani et al. 2017, section 3.2.1."""

from tests.models.dense import masked_softmax, relative


def kernel(drawn):
    """Over all keys that are visible."""
    return masked_softmax(relative.scores(drawn), drawn.visible())
