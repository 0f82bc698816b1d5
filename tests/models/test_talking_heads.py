"""Talking heads: where they are softmax attention, and what they hide."""

import keras
import numpy as np
import pytest
from keras import ops

from models.transformer.attention import ProjectedAttention
from tests.models.builders import numpy, randomize
from tests.models.operator_checks import (
    assert_attends_as,
    assert_dynamic_lengths_serve,
    assert_mixed_precision_is_near,
)

BATCH, LENGTH, WIDTH, HEADS = 2, 9, 16, 4


def make(operator="talking-heads", use="self", **options):
    layer = ProjectedAttention(num_heads=HEADS, operator=operator, use=use, **options)
    layer.build((None, None, WIDTH))
    return layer


def mix(layer, scores, weights):
    """The layer with these mixes."""
    layer.operator.score_mix.assign(scores)
    layer.operator.weight_mix.assign(weights)
    return layer


def text(length=LENGTH):
    x = np.random.default_rng(0).normal(size=(BATCH, length, WIDTH))
    return ops.convert_to_tensor(x.astype("float32"))


@pytest.mark.parametrize("use", ["self", "causal"])
def test_with_identities_it_is_softmax(use):
    softmax, layer = make("softmax", use), mix(make(use=use), *[np.eye(HEADS)] * 2)
    layer.query_key_value.set_weights(softmax.query_key_value.get_weights())
    x, mask = text(), np.ones((BATCH, LENGTH), bool)
    mask[1, 5:] = False
    mask = ops.convert_to_tensor(mask)
    assert_attends_as(layer, softmax, x, mask)


def test_mixes_that_exchange_heads_exchange_what_they_attend():
    order = np.random.default_rng(1).permutation(HEADS)
    exchange = np.eye(HEADS)[order]
    once, back = make(), make()
    mix(once, np.eye(HEADS), np.eye(HEADS))
    mix(back, exchange, exchange.T)
    back.query_key_value.set_weights(once.query_key_value.get_weights())
    x = text()
    np.testing.assert_allclose(
        numpy(back(x, x).read(0, None)),
        numpy(once(x, x).read(0, None)),
        rtol=0,
        atol=1e-6,
    )


def test_a_mix_of_negative_scores_shows_nothing_that_is_hidden():
    negative = -np.ones((HEADS, HEADS))
    layer = mix(make(use="causal"), negative, negative)
    x, changed = text(), numpy(text()).copy()
    changed[:, 5:] += 1
    attended, expected = (numpy(layer(y, y).read(0, None)) for y in (changed, x))
    np.testing.assert_allclose(attended[:, :5], expected[:, :5], rtol=0, atol=1e-6)


def test_mixed_precision_gives_nearly_the_same():
    layer, mixed = randomize(make()), make(dtype="mixed_bfloat16")
    assert_mixed_precision_is_near(layer, mixed, text())


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="lengths are static elsewhere"
)
def test_a_length_may_be_known_only_when_it_runs():
    layer = randomize(make(use="causal"))
    assert_dynamic_lengths_serve(layer, [text(LENGTH), text(4)])
