"""phi(Q) phi(K)^T, Katharopoulos et al. 2020, equation 4."""

import numpy as np


def kernel(drawn):
    """Products of features at visible keys."""
    queries, keys = features(drawn, normalised=False)
    return np.where(drawn.visible(), queries @ keys.swapaxes(-1, -2), 0)


def features(drawn, normalised):
    """Those of queries and keys; with their sum 1 if their field, or else `normalised`,
    says so (Schlag et al. 2021, section 4.2)."""
    mapped = [
        FEATURES[drawn.hyperparameters["feature_map"]](x * drawn.scale**0.5, drawn)
        for x in (drawn.queries, drawn.keys)
    ]
    if not drawn.hyperparameters.get("sum_normalisation", normalised):
        return mapped
    totals = [x.sum(axis=-1, keepdims=True) for x in mapped]
    return [x / np.where(y > 0, y, 1) for x, y in zip(mapped, totals, strict=True)]


def _elu1(x, drawn):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def _dpfp(x, drawn):
    """Schlag et al. 2021, equation 37."""
    r = np.maximum(np.concatenate([x, -x], axis=-1), 0)
    shifts = range(1, drawn.hyperparameters["nu"] + 1)
    return np.concatenate([r * np.roll(r, shift, axis=-1) for shift in shifts], axis=-1)


def _favor(x, drawn):
    """Choromanski et al. 2021, lemma 1, with the operator's own random vectors."""
    vectors = drawn.operator.feature_map.vectors[0].astype("float64")
    squares = np.sum(x**2, axis=-1, keepdims=True) / 2
    return np.exp(x @ vectors.T - squares) / len(vectors) ** 0.5


def _tanh(x, drawn):
    return np.tanh(x)


FEATURES = {"elu1": _elu1, "dpfp": _dpfp, "favor": _favor, "tanh": _tanh}
