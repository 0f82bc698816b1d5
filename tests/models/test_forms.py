"""The factored form against the literal one: outputs, gradients, conversion."""

import keras
import numpy as np
import pytest
from keras import ops

from models.convert import with_attention
from models.transevolve.attention import TimeEvolvingAttention
from models.transevolve.encoder import TransEvolveEncoder
from models.transevolve.literal import LiteralAttention
from tests.models.builders import build, tokens
from tests.models.forms import (
    Attend,
    attention_pair,
    equation_9,
    numpy,
    set_logits,
)
from tests.models.gradients import gradients, with_gradients

PADDING = {
    "none": [],
    "tail": [(0, slice(7, None)), (2, slice(1, None))],
    "scattered": [(0, slice(0, 3)), (1, slice(2, 9, 2)), (2, 10)],
}


@pytest.mark.parametrize(
    "padding", [pytest.param("none", marks=pytest.mark.long), "tail", "scattered"]
)
@pytest.mark.parametrize("fidelity", ["paper", "official"])
@pytest.mark.parametrize("feed_forward", ["dense", "rotation"])
def test_factored_equals_literal(feed_forward, fidelity, padding):
    factored = build(feed_forward=feed_forward, fidelity=fidelity)
    literal = with_attention(factored, "literal")
    ids = tokens(padding=PADDING[padding])
    real = ids != 0
    np.testing.assert_allclose(
        numpy(factored.encode(ids))[real],
        numpy(literal.encode(ids))[real],
        rtol=0,
        atol=1e-5,
    )

    def loss(call):
        return ops.mean(ops.square(call(ids)))

    fast, exact = gradients(factored, loss), gradients(literal, loss)
    for name, gradient in fast.items():
        error = np.linalg.norm(gradient - exact[name])
        assert error <= 1e-4 * np.linalg.norm(exact[name]) + 1e-7, name


def test_dead_weights_have_no_gradient():
    model = with_attention(build(), "literal")

    def loss(call):
        return ops.mean(ops.square(call(tokens())))

    found = gradients(model, loss)
    dead = [name for name in found if name.endswith("key_time_kernel")]
    assert len(dead) == len(model.encoder.layers)
    for name in dead:
        live = found[name.replace("key_time_kernel", "query_time_kernel")]
        assert np.linalg.norm(found[name]) < 1e-5 * np.linalg.norm(live)


def test_conversion_keeps_weights_both_ways():
    model = build(feed_forward="rotation")
    back = with_attention(with_attention(model, "literal"), "factored")
    assert len(back.weights) == len(model.weights)
    for old, new in zip(model.weights, back.weights, strict=True):
        np.testing.assert_array_equal(numpy(old), numpy(new))


def run(layer, x, mask, depth):
    state = layer(x, x, mask)
    return state, numpy(state.read(depth, ops.convert_to_tensor(x)))


@pytest.mark.parametrize("padding", ["none", "tail"])
@pytest.mark.parametrize("fidelity", ["paper", "official"])
@pytest.mark.parametrize("spread", [0.0, 10.0, 16.0, 50.0, 200.0])
def test_forms_agree_at_far_apart_logits(spread, fidelity, padding):
    """Scores up to +-200, key biases up to +-`spread`: on both sides of the guard."""
    literal, factored = attention_pair(32, 4, 1, fidelity=fidelity)
    x = np.random.default_rng(1).normal(size=(2, 24, 32)).astype("float32")
    mask = np.ones((2, 24), bool)
    if padding == "tail":
        mask[1, 5:] = False
    set_logits((literal, factored), x, mask, 200, spread)
    state, fast = run(factored, x, mask, 0)
    # A row's sum is at least e^-2 spread where one key alone has all its weight.
    assert bool(state.is_safe) == (spread <= 16)
    assert np.isfinite(fast).all()
    exact = equation_9(literal, x.astype("float64"), mask, 0)
    np.testing.assert_allclose(fast[mask], exact[mask], rtol=0, atol=1e-4)
    # In float32 the literal form loses more: it adds terms as large that cancel.
    _, printed = run(literal, x, mask, 0)
    np.testing.assert_allclose(printed[mask], exact[mask], rtol=0, atol=1e-3)

    # Without those terms, gradients can be compared.
    literal.key_time_kernel.assign(np.zeros(literal.key_time_kernel.shape))
    direction = np.random.default_rng(2).normal(size=x.shape).astype("float32")
    direction *= mask[:, :, None]

    def loss(call):
        return ops.sum(ops.multiply(call(x), direction))

    slopes = []
    for layer in (factored, literal):
        model = Attend(layer, mask)
        slopes.append(gradients(model, loss))
    for name, gradient in slopes[0].items():
        assert np.isfinite(gradient).all(), name
        error = np.linalg.norm(gradient - slopes[1][name])
        size = np.linalg.norm(slopes[1][name])
        assert error <= 1e-4 * size + 1e-6, (name, error / size)


@pytest.mark.jax
def test_causal_rows_that_see_no_real_key_stay_finite():
    _, factored = attention_pair(16, 2, 2, causal=True)
    mask = np.array([[False] * 4 + [True] * 5])
    x = np.random.default_rng(0).normal(size=(1, 9, 16)).astype("float32")
    model = Attend(factored, mask)

    def total(call):
        output = call(x)
        return ops.sum(output), output

    (_, output), slopes = with_gradients(model, total)
    assert np.isfinite(numpy(output)).all()
    for gradient in slopes.values():
        assert np.isfinite(gradient).all()


def test_gradients_are_finite_and_equal_past_the_guard():
    factored = build(num_blocks=1)
    attention = factored.encoder.layers[0].attention
    attention.time_coefficients.assign(attention.time_coefficients * 100)
    attention.query_kernel.assign(attention.query_kernel * 100)
    literal = with_attention(factored, "literal")
    # The terms that cancel would cost the literal form its precision here.
    dead = literal.encoder.layers[0].attention.key_time_kernel
    dead.assign(np.zeros(dead.shape))
    ids = tokens(padding=PADDING["tail"])
    state = attention(factored.embedding(ids), factored.embedding(ids), ids != 0)
    assert not bool(state.is_safe)

    def loss(call):
        return ops.mean(ops.square(call(ids)))

    fast, exact = gradients(factored, loss), gradients(literal, loss)
    for name, gradient in fast.items():
        assert np.isfinite(gradient).all(), name
        error = np.linalg.norm(gradient - exact[name])
        assert error <= 1e-3 * np.linalg.norm(exact[name]) + 1e-6, name


@pytest.mark.parametrize("form", ["literal", "factored"])
def test_attention_builds_when_called(form):
    forms = {"literal": LiteralAttention, "factored": TimeEvolvingAttention}
    layer = forms[form](num_heads=2)
    x = np.ones((1, 3, 8), "float32")
    assert layer(x, x).read(0, x).shape == (1, 3, 8)


def test_a_read_is_taken_once():
    _, factored = attention_pair(16, 2, 2)
    x = np.ones((1, 3, 16), "float32")
    state = factored(x, x)
    state.read(0, x)
    state.read(1, x)
    with pytest.raises(ValueError, match="read 0 was taken before"):
        state.read(0, x)


def test_layers_take_a_dtype():
    _, factored = attention_pair(16, 2, 1)
    config = {**factored.get_config(), "dtype": "mixed_bfloat16"}
    layer = TimeEvolvingAttention.from_config(config)
    x = np.ones((1, 3, 16), "float32")
    state = layer(x, x)
    read = state.reads[0]
    output = state.read(0, x)
    for tensor in (state.parts[0], read.sums, output):
        assert ops.dtype(tensor) == "bfloat16"
    config = {**build().encoder.get_config(), "dtype": "mixed_bfloat16"}
    encoder = TransEvolveEncoder.from_config(config)
    assert ops.dtype(encoder(np.ones((1, 5, 32), "float32"))) == "bfloat16"


@pytest.mark.jax
@pytest.mark.skipif(keras.backend.backend() != "jax", reason="transformations of JAX")
@pytest.mark.parametrize("largest_bias", [1, 60])
def test_jax_may_transform_the_gradient(largest_bias):
    import jax

    pair = attention_pair(16, 2, 2)
    x = np.random.default_rng(0).normal(size=(2, 7, 16)).astype("float32")
    mask = np.ones((2, 7), bool)
    set_logits(pair, x, mask, 1, largest_bias)
    slopes = []
    for layer in pair:
        model = Attend(layer, mask)

        def loss(x, model=model):
            return ops.sum(ops.square(model(x)))

        slopes.append(jax.jit(jax.grad(loss))(x))
        for transformed in (
            jax.grad(jax.jit(loss)),
            jax.grad(jax.checkpoint(loss)),
            jax.jit(jax.grad(jax.checkpoint(loss))),
        ):
            assert_near(transformed(x), slopes[-1], 1e-5)
    assert_near(*slopes, 1e-4)


def assert_near(found, expected, tolerance):
    """All within `tolerance` of the largest expected number."""
    largest = np.abs(numpy(expected)).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * largest)
