"""Sparse attentions whose keys are the whole text: then they are softmax attention."""

import numpy as np
import pytest
from keras import ops

from models.attention import OPERATORS
from models.transformer.attention import ProjectedAttention
from tests.models.operator_checks import assert_attends_as

pytestmark = pytest.mark.jax

LENGTH, WIDTH, HEADS = 14, 16, 2
CASES = [
    ("local", {"window": LENGTH}, "self"),
    ("local", {"window": 64}, "self"),
    ("local", {"window": LENGTH}, "causal"),
    ("local", {"window": 64}, "causal"),
    ("sinkhorn", {"block": 64}, "self"),
    ("big-bird", {"block": 4, "global_blocks": 9}, "self"),
    ("big-bird", {"block": 64}, "self"),
]


def build(name, use, hyperparameters):
    layer = ProjectedAttention(
        num_heads=HEADS,
        operator=name,
        use=use,
        max_length=LENGTH,
        **{**OPERATORS[name].variants[""], **hyperparameters},
    )
    layer.build((None, None, WIDTH))
    return layer


@pytest.mark.parametrize("name, hyperparameters, use", CASES)
def test_with_all_keys_it_is_softmax_and_so_are_its_gradients(
    name, hyperparameters, use
):
    softmax = build("softmax", use, {})
    layer = build(name, use, hyperparameters)
    layer.query_key_value.set_weights(softmax.query_key_value.get_weights())
    x = np.random.default_rng(0).normal(size=(2, LENGTH, WIDTH)).astype("float32")
    mask = np.arange(LENGTH) < np.array([[LENGTH], [5]])
    assert_attends_as(layer, softmax, ops.convert_to_tensor(x), mask)
