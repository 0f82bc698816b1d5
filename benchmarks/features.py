"""How near random features come to softmax attention."""

from collections.abc import Iterator

import keras
import numpy as np

from common.progress import progress_bar
from models.attention.feature_maps import Favor

NUM_FEATURES = (64, 128, 256, 512, 1024, 2048, 4096)
# Numbers of a head, and the norms of queries and keys, fixed: errors grow with both.
SIZE, NORM = 32, 1.0
QUERIES, KEYS, DRAWS = 64, 64, 20
KINDS = {
    "orthogonal, paired": {"orthogonal": True, "paired": True},
    "orthogonal": {"orthogonal": True, "paired": False},
    "independent": {"orthogonal": False, "paired": False},
}


def measure() -> Iterator[dict]:
    """Yields a row for each number of features and each kind of vectors.

    The error is that of FAVOR+'s attention weights, as a share of the softmax's: the
    root of its mean square over queries, keys and draws.
    """
    rng = np.random.default_rng(0)
    queries, keys = (_of_norm(rng, count) for count in (QUERIES, KEYS))
    exact = _normalised(np.exp(queries @ keys.T))
    total = len(KINDS) * len(NUM_FEATURES)
    with progress_bar(total=total, desc="features") as progress:
        for kind, fields in KINDS.items():
            for count in NUM_FEATURES:
                errors = [
                    weights(queries, keys, count, seed, **fields) / exact - 1
                    for seed in range(DRAWS)
                ]
                progress.update()
                yield {
                    "benchmark": "features",
                    "vectors": kind,
                    "num_features": count,
                    "error": round(float(np.sqrt(np.mean(np.square(errors)))), 5),
                }


def weights(queries, keys, count: int, seed: int, **fields) -> np.ndarray:
    """Attention weights by random features, (queries, keys).

    Args:
      **fields: `orthogonal` and `paired` of `Favor`.
    """
    feature_map = Favor(
        queries.shape[-1],
        seed,
        num_features=count,
        redraw_every=0,
        kernel="softmax",
        **fields,
    )
    features, logs = feature_map.keys(keys)
    products = _numpy(feature_map.queries(queries)) @ _numpy(features).T
    return _normalised(products * np.exp(_numpy(logs)).T)


def _of_norm(rng, count):
    x = rng.normal(size=(count, SIZE))
    x *= NORM / np.linalg.norm(x, axis=-1, keepdims=True)
    return x.astype("float32")


def _normalised(x):
    return x / x.sum(axis=-1, keepdims=True)


def _numpy(x):
    return keras.ops.convert_to_numpy(x).astype("float64")
