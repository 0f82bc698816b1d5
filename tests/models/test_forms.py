"""The factored form against the literal one: outputs, gradients, conversion."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from models.convert import to_form
from models.factored_attention import SAFE_SPREAD, FactoredAttention
from models.literal_attention import LiteralAttention
from tests.models.builders import build, tokens
from tests.models.gradients import gradients

PADDING = {
    "none": [],
    "tail": [(0, slice(7, None)), (2, slice(1, None))],
    "scattered": [(0, slice(0, 3)), (1, slice(2, 9, 2)), (2, 10)],
}


def numpy(tensor):
    return ops.convert_to_numpy(tensor)


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("fidelity", ["paper", "official"])
@pytest.mark.parametrize("feed_forward", ["dense", "rotation"])
def test_forms_agree(feed_forward, fidelity, padding):
    factored = build(feed_forward=feed_forward, fidelity=fidelity)
    literal = to_form(factored, "literal")
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
    model = to_form(build(), "literal")

    def loss(call):
        return ops.mean(ops.square(call(tokens())))

    found = gradients(model, loss)
    dead = [name for name in found if name.endswith("key_time_kernel")]
    assert len(dead) == model.encoder.num_blocks
    for name in dead:
        live = found[name.replace("key_time_kernel", "query_time_kernel")]
        assert np.linalg.norm(found[name]) < 1e-5 * np.linalg.norm(live)


def test_conversion_keeps_weights_both_ways():
    model = build(feed_forward="rotation")
    back = to_form(to_form(model, "literal"), "factored")
    assert len(back.weights) == len(model.weights)
    for old, new in zip(model.weights, back.weights, strict=True):
        np.testing.assert_array_equal(numpy(old), numpy(new))


def attention_pair(width, heads, depths, causal=False, fidelity="paper", seed=0):
    """Both forms with the same random weights."""
    random = np.random.default_rng(seed)
    pair = []
    for form in (LiteralAttention, FactoredAttention):
        layer = form(heads, depths, causal=causal, fidelity=fidelity)
        layer.build((None, None, width))
        pair.append(layer)
    literal, factored = pair
    for name in (
        "query_kernel",
        "query_time_kernel",
        "key_kernel",
        "time_coefficients",
    ):
        shape = getattr(literal, name).shape
        value = random.normal(0, shape[-1] ** -0.5, shape)
        getattr(literal, name).assign(value)
        getattr(factored, name).assign(value)
    return literal, factored


def equation_9(layer, x, mask, depth):
    """What `attend` should give, in float64, from the literal layer's weights."""

    def split(y):
        return y.reshape(*y.shape[:2], layer.num_heads, -1)

    weights = {weight.name: numpy(weight).astype("float64") for weight in layer.weights}
    queries, keys = x @ weights["query_kernel"], x @ weights["key_kernel"]
    time = (weights["time_coefficients"] * layer.features)[depth]
    time = time.reshape(layer.num_heads, -1)
    query_time, key_time = (
        weights[name].reshape(layer.num_heads, -1, layer.projected_dim)
        for name in ("query_time_kernel", "key_time_kernel")
    )
    scores = layer.scale * np.einsum("bihd,bjhd->bhij", split(queries), split(keys))
    scores += np.einsum("bid,htd,ht->bhi", queries, key_time, time)[..., None]
    scores += np.einsum("bjd,htd,ht->bhj", keys, query_time, time)[:, :, None]
    scores += np.einsum("htd,htd,ht->h", query_time, key_time, time**2)[:, None, None]
    scores = np.where(mask[:, None, None, :], scores, -np.inf)
    attention = np.exp(scores - scores.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", attention, split(x)).reshape(x.shape)


def run(layer, x, mask, depth):
    state = layer(x, x, mask)
    return state, numpy(layer.attend(state, depth, ops.convert_to_tensor(x)))


@pytest.mark.parametrize("padding", ["none", "tail"])
@pytest.mark.parametrize("fidelity", ["paper", "official"])
@pytest.mark.parametrize("spread", [0.0, 10.0, 18.0, 50.0, 200.0])
def test_forms_agree_at_far_apart_logits(spread, fidelity, padding):
    """Scores up to +-200, key biases up to +-`spread`: on both sides of the guard."""
    literal, factored = attention_pair(32, 4, 1, fidelity=fidelity)
    x = np.random.default_rng(1).normal(size=(2, 24, 32)).astype("float32")
    mask = np.ones((2, 24), bool)
    if padding == "tail":
        mask[1, 5:] = False
    scores = numpy(literal(x, x).scores)
    biases = numpy(factored(x, x, mask).biases[0])[..., 0].transpose(0, 2, 1)[mask]
    for layer in (literal, factored):
        layer.query_kernel.assign(layer.query_kernel * (200 / np.abs(scores).max()))
        slope = spread / np.abs(biases).max()
        layer.time_coefficients.assign(layer.time_coefficients * slope)
    state, fast = run(factored, x, mask, 0)
    spreads = slope * (biases.max(0) - biases.min(0))
    assert bool(state.safe) == (spread <= 18) == (spreads.max() < SAFE_SPREAD)
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
        return ops.sum(call(x) * direction)

    slopes = []
    for layer in (factored, literal):
        model = Attend(layer, mask)
        model.build((None, None, 32))
        slopes.append(gradients(model, loss))
    for name, gradient in slopes[0].items():
        assert np.isfinite(gradient).all(), name
        error = np.linalg.norm(gradient - slopes[1][name])
        size = np.linalg.norm(slopes[1][name])
        assert error <= 1e-4 * size + 1e-6, (name, error / size)


def test_causal_rows_that_see_no_real_key_stay_finite():
    _, factored = attention_pair(16, 2, 2, causal=True)
    mask = np.array([[False] * 4 + [True] * 5])
    x = np.random.default_rng(0).normal(size=(1, 9, 16)).astype("float32")
    model = Attend(factored, mask)
    model.build((None, None, 16))
    assert np.isfinite(numpy(model(x))).all()
    for gradient in gradients(model, lambda call: ops.sum(call(x))).values():
        assert np.isfinite(gradient).all()


class Attend(keras.Model):
    """Attention at depth 0, of its input over itself."""

    def __init__(self, attention, mask):
        super().__init__(name="attend")
        self.attention, self.mask = attention, mask

    def build(self, input_shape):
        pass

    def call(self, x):
        return self.attention.attend(self.attention(x, x, self.mask), 0, x)


def test_gradients_are_finite_and_equal_past_the_guard():
    factored = build(num_blocks=1)
    attention = factored.encoder.blocks[0].attention
    attention.time_coefficients.assign(attention.time_coefficients * 300)
    literal = to_form(factored, "literal")
    # The terms that cancel would cost the literal form its precision here.
    dead = literal.encoder.blocks[0].attention.key_time_kernel
    dead.assign(np.zeros(dead.shape))
    ids = tokens(padding=PADDING["tail"])
    state = attention(factored.embedding(ids), factored.embedding(ids), ids != 0)
    assert not bool(state.safe)

    def loss(call):
        return ops.mean(ops.square(call(ids)))

    fast, exact = gradients(factored, loss), gradients(literal, loss)
    for name, gradient in fast.items():
        assert np.isfinite(gradient).all(), name
        error = np.linalg.norm(gradient - exact[name])
        assert error <= 1e-3 * np.linalg.norm(exact[name]) + 1e-6, name


@settings(max_examples=25)
@given(
    length=st.integers(1, 17),
    heads=st.sampled_from([1, 2, 4]),
    depths=st.integers(1, 4),
    causal=st.booleans(),
    fidelity=st.sampled_from(["paper", "official"]),
    data=st.data(),
)
def test_forms_agree_over_shapes_and_masks(
    length, heads, depths, causal, fidelity, data
):
    literal, factored = attention_pair(16, heads, depths, causal, fidelity)
    real = data.draw(st.lists(st.booleans(), min_size=length, max_size=length))
    # A query that sees no real key has no defined output.
    real[0] = True
    mask = np.array([real, [True] * length])
    x = np.random.default_rng(length).normal(size=(2, length, 16)).astype("float32")
    for depth in range(depths):
        fast, exact = run(factored, x, mask, depth)[1], run(literal, x, mask, depth)[1]
        np.testing.assert_allclose(fast, exact, rtol=0, atol=1e-5)
