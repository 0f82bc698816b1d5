"""Adaptive softmax against the probabilities of all words."""

import keras
import numpy as np
import pytest

from models import build_language_model
from models.layers import adaptive_softmax
from models.layers.adaptive_softmax import AdaptiveEmbedding
from tests.models.builders import (
    CAUSAL_CONFIGS,
    MAX_LENGTH,
    at_once,
    numpy,
    randomize,
    tokens,
)
from tests.models.gradients import gradients

pytestmark = pytest.mark.jax

WORDS, WIDTH = 40, 8
CUTOFFS = [[12], [10, 11, 25]]
EACH_CUTOFFS = pytest.mark.parametrize("cutoffs", CUTOFFS, ids=str)


@pytest.fixture(params=[3, 1000], ids=["tiles of few rows", "one tile"], autouse=True)
def rows_in_a_tile(request, monkeypatch):
    monkeypatch.setattr(adaptive_softmax, "TILE", request.param * WORDS)


def embedding_and_inputs(cutoffs):
    layer = AdaptiveEmbedding(WORDS, WIDTH, cutoffs=cutoffs)
    layer.build((None, None))
    draw = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(draw.normal(size=weight.shape))
    x = draw.normal(size=(2, 50, WIDTH)).astype("float32")
    return layer, x, draw.integers(1, WORDS, (2, 50)).astype("int32")


def probabilities(layer, x):
    """(batch, n, words) as Grave et al. write them, float64."""

    def softmax(z):
        return np.exp(z) / np.exp(z).sum(-1, keepdims=True)

    table, clusters = (np.float64(numpy(w)) for w in layer.weights)
    bounds = [*layer.cutoffs, WORDS]
    head = softmax(x @ np.concatenate([table[: bounds[0]], clusters]).T)
    parts = [head[..., : bounds[0]]]
    for i, (start, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        of_cluster = head[..., bounds[0] + i, None]
        parts.append(of_cluster * softmax(x @ table[start:end].T))
    return np.concatenate(parts, axis=-1)


@EACH_CUTOFFS
def test_probabilities_are_the_definition_s(cutoffs):
    layer, x, _ = embedding_and_inputs(cutoffs)
    expected = probabilities(layer, np.float64(x))
    np.testing.assert_allclose(expected.sum(-1), 1)
    for logits in (layer.logits, layer.logits_at_position):
        np.testing.assert_allclose(np.exp(numpy(logits(x))), expected, rtol=1e-5)


@EACH_CUTOFFS
def test_losses_are_those_of_all_probabilities(cutoffs):
    layer, x, targets = embedding_and_inputs(cutoffs)
    expected = probabilities(layer, np.float64(x))
    of_targets = np.take_along_axis(expected, targets[..., None], -1)[..., 0]
    choices = expected.argmax(-1)
    # So that some targets of each kind are the first choice.
    targets[0], of_targets[0] = choices[0], expected.max(-1)[0]
    losses, right = at_once(layer.losses)(x, targets)
    np.testing.assert_allclose(numpy(losses), -np.log(of_targets), rtol=1e-5, atol=5e-6)
    np.testing.assert_array_equal(numpy(right), choices == targets)
    assert len({np.searchsorted(cutoffs, x, "right") for x in choices.flat}) > 1


def language_model(cutoffs):
    config = CAUSAL_CONFIGS["transevolve-fullff-2"]
    config = {**config, "num_blocks": 1, "num_depths": 1, "adaptive_cutoffs": cutoffs}
    return randomize(build_language_model(config, WORDS, 0, MAX_LENGTH))


@pytest.mark.parametrize(
    "cutoffs, compiled", [*((x, None) for x in CUTOFFS), (CUTOFFS[1], True)], ids=str
)
def test_gradients_are_those_of_all_probabilities(cutoffs, compiled):
    model, text = language_model(cutoffs), tokens(length=6)
    targets = np.roll(text, -1, axis=1)
    weigh = keras.ops.convert_to_tensor(
        np.random.default_rng(1).normal(size=targets.shape), "float32"
    )

    def by_tiles(call):
        return keras.ops.sum(weigh * call(text, targets=targets)[0])

    def by_all(call):
        log_probs = keras.ops.take_along_axis(call(text), targets[..., None], -1)
        return -keras.ops.sum(weigh * log_probs[..., 0])

    found, expected = (gradients(model, f, compiled) for f in (by_tiles, by_all))
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-5)


def test_a_model_is_made_anew_from_its_config():
    model, text = language_model((10, 25)), tokens(length=6)
    copy = type(model).from_config(model.get_config())
    copy.build((None, None))
    copy.set_weights(model.get_weights())
    np.testing.assert_allclose(numpy(copy(text)), numpy(model(text)), rtol=1e-6)


@pytest.mark.parametrize("cutoffs", [[0], [40], [25, 10]], ids=str)
def test_cutoffs_that_part_nothing_are_refused(cutoffs):
    with pytest.raises(ValueError, match="increasing cutoffs from 1 to 39"):
        AdaptiveEmbedding(WORDS, WIDTH, cutoffs=cutoffs)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="sizes are static elsewhere"
)
def test_a_batch_size_may_be_known_only_when_it_runs():
    import tensorflow as tf

    layer, x, targets = embedding_and_inputs(CUTOFFS[1])
    specs = [tf.TensorSpec([None, 50, WIDTH]), tf.TensorSpec([None, 50], "int32")]
    compiled = tf.function(layer.losses, input_signature=specs)
    for found, expected in zip(
        compiled(x, targets), layer.losses(x, targets), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_mixed_precision_is_near():
    layer, x, targets = embedding_and_inputs(CUTOFFS[1])
    mixed = AdaptiveEmbedding(WORDS, WIDTH, cutoffs=CUTOFFS[1], dtype="mixed_bfloat16")
    mixed.build((None, None))
    mixed.set_weights(layer.get_weights())
    losses, _ = mixed.losses(keras.ops.cast(x, "bfloat16"), targets)
    assert keras.backend.standardize_dtype(losses.dtype) == "float32"
    errors = np.abs(numpy(losses) - numpy(layer.losses(x, targets)[0]))
    # Of products of eight numbers, rounded to eight bits.
    assert 0 < errors.mean() < 0.022 and errors.max() < 0.1
