"""Reversible residuals of the Transformer's encoder."""

import keras
import numpy as np
import pytest
from keras import ops
from ml_collections import ConfigDict

import models
from common.errors import UserError
from models import reversible
from tests.models.builders import (
    TRANSFORMER,
    VOCABULARY_SIZE,
    build_any,
    numpy,
    tokens,
)
from tests.models.gradients import with_gradients

pytestmark = pytest.mark.jax

SOURCE = tokens(length=9, padding=[(1, slice(6, None))])
REVERSIBLE = {**TRANSFORMER, "num_layers": 3, "residuals": "reversible"}


def written_out(encoder, x, mask, training=None):
    """Both halves, differentiated as usual."""
    first = second = x
    for layer in encoder.layers:
        attend, transform = layer.increments(mask, training)
        first = first + attend.function(second)
        second = second + transform.function(first)
    return encoder.output_norm((first + second) / 2)


def by(config, is_written_out=False):
    """The logits and gradients of a model by its encoder."""
    # A model each: dropout draws anew with each call.
    model = build_any(config, decoder=False)
    encoder, mask = model.encoder, ops.not_equal(SOURCE, 0)

    def loss(call):
        logits = call(SOURCE, training=True)
        return ops.mean(logits * ops.cast(ops.arange(4), logits.dtype)), logits

    with pytest.MonkeyPatch.context() as patch:
        if is_written_out:

            def call(x, padding_mask, training):
                return written_out(encoder, x, mask, training)

            patch.setattr(encoder, "call", call)
            patch.setattr(reversible, "take", None)
        (_, logits), slopes = with_gradients(model, loss)
    return numpy(ops.cast(logits, "float32")), slopes


@pytest.mark.parametrize(
    "name, dropout",
    [
        ("softmax", 0.3),
        ("linear", 0.0),
        pytest.param("softmax", 0.0, marks=pytest.mark.long),
        pytest.param("linear", 0.3, marks=pytest.mark.long),
    ],
)
def test_gradients_are_those_of_the_halves_written_out(name, dropout):
    attention = {
        "softmax": {"name": "softmax"},
        "linear": {"name": "linear", "feature_map": "elu1"},
    }[name]
    config = {**REVERSIBLE, "dropout": dropout, "attention": attention}
    logits, slopes = by(config)
    expected_logits, expected = by(config, is_written_out=True)
    np.testing.assert_allclose(logits, expected_logits, rtol=0, atol=1e-5)
    assert slopes.keys() == expected.keys()
    for path, slope in expected.items():
        scale = max(np.abs(slope).max(), 1e-2)
        np.testing.assert_allclose(slopes[path], slope, rtol=0, atol=1e-4 * scale)


def test_it_needs_no_mask():
    encoder = build_any(REVERSIBLE, decoder=False).encoder
    x = np.random.default_rng(0).normal(size=(2, 5, 32)).astype("float32")
    np.testing.assert_allclose(
        numpy(encoder(x)), numpy(encoder(x, np.ones((2, 5), bool))), rtol=0, atol=1e-5
    )


def test_each_call_has_a_dropout_of_its_own():
    model = build_any({**REVERSIBLE, "dropout": 0.3}, decoder=False)
    first, second = (numpy(model(SOURCE, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3


def test_in_mixed_precision_it_is_near():
    _, slopes = by({**REVERSIBLE, "dtype": "mixed_bfloat16"})
    _, expected = by(REVERSIBLE)
    for path, slope in expected.items():
        error = np.linalg.norm(slopes[path] - slope)
        assert error < 0.1 * np.linalg.norm(slope) + 1e-3, path


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX counts its memory")
def test_memory_does_not_grow_with_the_layers():
    import jax

    def memory(num_layers, **changes):
        config = {**TRANSFORMER, "num_layers": num_layers, **changes}
        encoder = models.build_classifier(config, VOCABULARY_SIZE, 4).encoder
        rest = [variable.value for variable in encoder.non_trainable_variables]

        def loss(weights, x):
            return ops.sum(encoder.stateless_call(weights, rest, x)[0] ** 2)

        weights = [weight.value for weight in encoder.trainable_variables]
        x = ops.zeros((2, 256, 32))
        compiled = jax.jit(jax.grad(loss)).lower(weights, x).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert memory(6) > 2 * memory(2)
    assert memory(6, residuals="reversible") < 1.2 * memory(2, residuals="reversible")


@pytest.mark.parametrize("field", ["residual_step", "norm", "sharing"])
def test_other_ways_of_adding_up_are_refused_beside_it(field):
    value = {"residual_step": "rk2", "norm": "post", "sharing": "weights"}[field]
    config = ConfigDict({"model": {**REVERSIBLE, field: value}})
    with pytest.raises(UserError, match=f"model.residuals: .* beside model.{field}"):
        models.check(config)
