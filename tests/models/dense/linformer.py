"""softmax(Q (E K)^T) F, Wang et al. 2020, equation 7."""

from tests.models.dense import masked_softmax


def kernel(drawn):
    """Keys and values are projected along the text. Padded ones count as zeros."""
    length = drawn.keys.shape[2]
    # The paper's E and F are of one length; a shorter text has their first columns.
    by_keys = drawn.weights["key_projection"][:, :length]
    by_values = drawn.weights["value_projection"][:, :length]
    keys = by_keys @ (drawn.keys * drawn.mask[:, None, :, None])
    scores = drawn.scale * drawn.queries @ keys.swapaxes(-1, -2)
    return masked_softmax(scores, True) @ by_values
