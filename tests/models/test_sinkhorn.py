"""Sinkhorn attention: its sorting, and where it is softmax attention."""

import keras
import numpy as np
import pytest

from models.attention.sinkhorn import SinkhornOperator
from tests.models.builders import at_once, numpy
from tests.models.test_operators import LENGTH, WIDTH, draw, make, padding, reads

pytestmark = pytest.mark.jax

BLOCK = 4
DEFAULTS = SinkhornOperator.variants[""]


def build(length=LENGTH, **hyperparameters):
    return make("sinkhorn", {**DEFAULTS, **hyperparameters}, "self", length)


def attended(operator, layer, mask):
    """All reads of random queries, keys, values and biases."""
    arrays = draw(layer)

    @at_once
    def read(*inputs):
        return reads(operator, layer, dict(zip(arrays, inputs, strict=True)), mask)

    return numpy(read(*arrays.values()))


@pytest.mark.parametrize("block", [LENGTH, 64])
def test_one_block_is_softmax(block):
    expected = attended(*make("softmax", {}, "self"), padding())
    outputs = attended(*build(block=block), padding())
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-6)


def test_one_block_and_padding_is_softmax():
    mask = np.zeros((2, LENGTH), bool)
    mask[0, :BLOCK] = mask[1, : BLOCK - 1] = True
    expected = attended(*make("softmax", {}, "self"), mask)
    outputs = attended(*build(block=BLOCK), mask)
    np.testing.assert_allclose(
        outputs[:, :, :BLOCK], expected[:, :, :BLOCK], rtol=0, atol=1e-6
    )


def sorting(operator, length, training=None, mask=None):
    """R of a random text."""
    x = np.random.default_rng(0).normal(size=(2, length, WIDTH)).astype("float32")
    (logs,) = operator.further_inputs(x, x, mask, training)
    return np.exp(numpy(logs))


# Noise makes some logits large, which takes more steps.
@pytest.mark.parametrize("training, iterations", [(False, 5), (True, 100)])
def test_sorting_is_doubly_stochastic(training, iterations):
    operator, _ = build(16 * BLOCK, block=BLOCK, iterations=iterations)
    random = np.random.default_rng(0)
    scale = (WIDTH * BLOCK) ** -0.5
    operator.sorting.assign(random.normal(0, scale, operator.sorting.shape))
    sorted_blocks = sorting(operator, 16 * BLOCK, training)
    assert (sorted_blocks >= 0).all()
    for axis in (-1, -2):
        np.testing.assert_allclose(sorted_blocks.sum(axis), 1, rtol=0, atol=1e-2)
    assert sorted_blocks.max() > 0.5  # it sorts


def test_padding_is_not_sorted_into_a_text():
    operator, _ = build(16 * BLOCK, block=BLOCK)
    mask = np.arange(16 * BLOCK) < np.array([[9 * BLOCK + 1], [16 * BLOCK]])
    first, _ = sorting(operator, 16 * BLOCK, mask=mask)
    assert not first[:, :10, 10:].any()
    assert not first[:, 10:, :10].any()
    np.testing.assert_allclose(first.sum(axis=-2), 1, rtol=0, atol=1e-5)


def test_blocks_start_as_equals():
    operator = SinkhornOperator(2, "self", 0, **DEFAULTS)
    layer = keras.layers.Layer()
    layer.hidden_dim, layer.max_length = WIDTH, 640
    operator.build(layer, 8)
    sorted_blocks = sorting(operator, 640)
    np.testing.assert_allclose(sorted_blocks, 0.1, rtol=0, atol=0.1)


def test_noise_is_of_training_and_of_a_variable():
    operator, layer = build(64, block=BLOCK)
    # By this name checkpoints and replicas know what is drawn.
    (state,) = (x for x in layer.variables if x.name == "seed_generator_state")
    quiet, start = sorting(operator, 64), numpy(state).copy()
    first, second = (sorting(operator, 64, training=True) for _ in range(2))
    assert np.abs(first - quiet).max() > 0.1
    assert np.abs(first - second).max() > 0.1
    state.assign(start)
    np.testing.assert_array_equal(sorting(operator, 64, training=True), first)
    state.assign(start)
    np.testing.assert_array_equal(sorting(operator, 64), quiet)
    np.testing.assert_array_equal(numpy(state), start)


def test_gumbel_noise_has_its_distribution():
    operator, _ = build(64 * BLOCK, block=BLOCK, temperature=1.0)
    mean, deviation = 0.5772, np.pi / 6**0.5
    operator.sorting.assign(np.zeros(operator.sorting.shape))
    operator.iterations = 0
    noise = np.log(sorting(operator, 64 * BLOCK, True))
    assert noise.mean() == pytest.approx(mean, abs=0.05)
    assert noise.std() == pytest.approx(deviation, abs=0.05)
