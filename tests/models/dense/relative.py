"""Scores of queries and keys with what is learned of their distance, pair by pair."""

import numpy as np

# Distances that are farther have the number or the vector of this one.
FARTHEST = 16


def scores(drawn):
    """(batch, heads, n, n), zeros for keys after the query where they are hidden."""
    relative = [score for name, score in SCORES.items() if name in drawn.weights]
    (score,) = relative or [_product]
    batch, heads, length, _ = drawn.queries.shape
    filled = np.zeros((batch, heads, length, length))
    for query in range(length):
        for key in range(query + 1 if drawn.causal else length):
            q, k = drawn.scale * drawn.queries[:, :, query], drawn.keys[:, :, key]
            filled[:, :, query, key] = score(q, k, query - key, drawn.weights)
    return filled


def _product(q, k, distance, weights):
    """Vaswani et al. 2017, equation 1."""
    return (q * k).sum(axis=-1)


def _with_bias(q, k, distance, weights):
    """Raffel et al. 2020, section 2.1: a scalar for each head is added to the logit."""
    return (q * k).sum(axis=-1) + weights["relative_bias"][:, _row(distance)]


def _with_key(q, k, distance, weights):
    """Shaw et al. 2018, equation 4. Its section 3.3 shares the vectors among heads."""
    return (q * (k + weights["relative_keys"][_row(distance)])).sum(axis=-1)


def _row(distance):
    """Of clip(j - i, k), from -k on: as below equation 4 of Shaw et al. 2018."""
    return max(-FARTHEST, min(FARTHEST, -distance)) + FARTHEST


def _with_sinusoids(q, k, distance, weights):
    """Dai et al. 2019, section 3.3: (q + u) k + (q + v) W R(i - j)."""
    u, v = (weights[f"relative_{name}_bias"][:, 0] for name in ("key", "distance"))
    r = _sinusoids(distance, weights["relative_kernel"]).reshape(u.shape)
    return ((q + u) * k).sum(axis=-1) + ((q + v) * r).sum(axis=-1)


def _sinusoids(distance, kernel):
    """W R, with R of Vaswani et al. 2017, section 3.5.

    The rows of the learned kernel are those of W in another order, which for the sines
    have another sign: of all sines of the opposite distance, then of all cosines.
    """
    width = len(kernel)
    projected = np.zeros(kernel.shape[1])
    for pair in range(width // 2):
        angle = distance / 10_000 ** (2 * pair / width)
        projected -= np.sin(angle) * kernel[pair]
        projected += np.cos(angle) * kernel[width // 2 + pair]
    return projected


SCORES = {
    "relative_bias": _with_bias,
    "relative_keys": _with_key,
    "relative_kernel": _with_sinusoids,
}
