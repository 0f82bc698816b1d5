"""Small models and inputs for tests."""

import keras
import numpy as np

from models import build_classifier

VOCABULARY_SIZE = 40
SMALL = {
    "encoder": "transevolve",
    "hidden_dim": 32,
    "num_heads": 4,
    "ffn_dim": 64,
    "num_blocks": 2,
    "num_depths": 3,
    "feed_forward": "dense",
    "form": "factored",
    "fidelity": "paper",
    "dropout": 0.0,
}
TRANSFORMER = {
    "encoder": "transformer",
    "hidden_dim": 32,
    "num_heads": 4,
    "ffn_dim": 64,
    "num_layers": 2,
    "dropout": 0.0,
}


def build(num_classes=4, **changes):
    """A small TransEvolve classifier whose every weight is random, gains too."""
    model = build_classifier({**SMALL, **changes}, VOCABULARY_SIZE, num_classes)
    return randomize(model)


def randomize(model, seed=0):
    random = np.random.default_rng(seed)
    for weight in sorted(model.trainable_variables, key=lambda weight: weight.path):
        value = keras.ops.convert_to_numpy(weight)
        weight.assign(value + random.normal(0, 0.1, value.shape))
    return model


def tokens(batch=3, length=11, padding=(), seed=0):
    """Random ids; `padding` are index pairs that become padding."""
    random = np.random.default_rng(seed)
    ids = random.integers(1, VOCABULARY_SIZE, (batch, length)).astype("int32")
    for index in padding:
        ids[index] = 0
    return ids
