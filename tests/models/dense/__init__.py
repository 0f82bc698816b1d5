"""Operators written out as matrices in NumPy's float64, a file for each.

`kernel(drawn)` in the file of an operator's name gives K from its paper's definition:
(batch, heads, n, m), or (batch, heads, n, m, size) where each number of a head has a
matrix of its own. It is written from the paper, not from the operator. Padding need not
be left out of K, since its keys have no weight: only what reaches other keys' entries.

`least(drawn)`, where an operator bounds what it divides by, gives a matrix: K w counts
as no less than its product with w.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Drawn(NamedTuple):
    """What K is made of, float64.

    Attributes:
      queries, keys: projected, by head, (batch, heads, n or m, size).
      x: input of the layer, (batch, n, d).
      mask: bool (batch, m), true at real tokens.
      scale: of products of queries and keys.
      causal: whether a query sees no key after it.
      weights: {name: array} of the operator's weights.
      hyperparameters: of the operator.
      operator: it, for what it has drawn at random alone.
    """

    queries: np.ndarray
    keys: np.ndarray
    x: np.ndarray
    mask: np.ndarray
    scale: float
    causal: bool
    weights: Mapping
    hyperparameters: Mapping
    operator: object

    def visible(self):
        """Which keys a query may see, bool (batch, 1, n, m)."""
        visible = np.broadcast_to(
            self.mask[:, None, None],
            (len(self.mask), 1, self.queries.shape[2], self.keys.shape[2]),
        )
        return (
            visible & np.tri(*visible.shape[2:], dtype=bool) if self.causal else visible
        )


def masked_softmax(scores, visible):
    """Of the last axis, over what is visible; zeros where nothing is."""
    scores = np.where(visible, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    return exponentials / np.maximum(exponentials.sum(axis=-1, keepdims=True), 1e-300)
