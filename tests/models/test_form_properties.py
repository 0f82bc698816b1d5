"""The factored form against the literal one over shapes, masks and logits."""

import functools

import keras
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from keras import ops

from tests.models.forms import Attend, attention_pair, equation_9, numpy, set_logits
from tests.models.gradients import gradients, with_gradients

pytestmark = pytest.mark.slow

CASES = {
    "real": st.lists(st.booleans(), min_size=1, max_size=17),
    "num_queries": st.sampled_from([None, 1, 3]),
    "heads": st.sampled_from([1, 2, 4]),
    "depths": st.integers(1, 4),
    "causal": st.booleans(),
    "fidelity": st.sampled_from(["paper", "official"]),
    "largest_score": st.sampled_from([1.0, 10.0, 200.0]),
    # On both sides of the guard.
    "largest_bias": st.sampled_from([0.5, 15.0, 60.0, 200.0]),
}
TYPICAL = {
    "real": [True] * 9 + [False] * 4,
    "num_queries": None,
    "heads": 4,
    "depths": 3,
    "causal": False,
    "fidelity": "paper",
    "largest_score": 10.0,
    "largest_bias": 15.0,
}
LEADING_PADDING = {**TYPICAL, "real": [False, False, True, True], "causal": True}
PAST_THE_GUARD = {**TYPICAL, "largest_bias": 60.0}


def draw(case):
    """Both forms as models with logits of those sizes, input, mask, defined rows."""
    causal = case["causal"]
    pair = attention_pair(16, case["heads"], case["depths"], causal, case["fidelity"])
    real = case["real"] if any(case["real"]) else [True, *case["real"]]
    mask = np.array([real, [True] * len(real)])
    length = len(real)
    # Causal attention is over a sequence itself.
    num_queries = length if causal else min(case["num_queries"] or length, length)
    x = np.random.default_rng(length).normal(size=(2, length, 16)).astype("float32")
    # The terms that cancel would cost the literal form its precision.
    pair[0].key_time_kernel.assign(np.zeros(pair[0].key_time_kernel.shape))
    set_logits(pair, x, mask, case["largest_score"], case["largest_bias"])
    exact = np.stack(
        [
            equation_9(pair[0], x.astype("float64"), mask, depth)[:, :num_queries]
            for depth in range(case["depths"])
        ]
    )
    models = [Attend(layer, mask, num_queries) for layer in pair]
    return models, x, exact, np.isfinite(exact[0]).all(-1)


def evaluate(model, x, direction, compiled):
    """The model's output, and the gradients of its product with `direction`."""

    def along(call):
        output = ops.cast(call(x), "float32")
        return ops.sum(ops.multiply(output, direction)), output

    (_, output), slopes = with_gradients(model, along, compiled)
    return numpy(output), slopes


def draw_direction(defined, shape):
    """Random gradients of the outputs that are defined."""
    direction = np.random.default_rng(2).normal(size=shape).astype("float32")
    return direction * defined[None, :, :, None]


def check(case, compiled):
    (literal, factored), x, exact, defined = draw(case)
    direction = draw_direction(defined, exact.shape)
    found, fast = evaluate(factored, x, direction, compiled)
    assert np.isfinite(found).all()
    error = np.abs(found - exact)[:, defined].max()
    assert error <= 2e-4
    _, expected = evaluate(literal, x, direction, compiled)
    # Where the gradient is small or zero, it is a difference of terms that are not.
    rounding = 2e-5 * (1 + case["largest_score"] + case["largest_bias"])
    for name, gradient in fast.items():
        error = np.linalg.norm(gradient - expected[name])
        size = np.linalg.norm(expected[name])
        assert error <= 1e-3 * size + rounding, (name, error, size)


# Without compilation JAX takes ten times as long.
EAGER_EXAMPLES = 3 if keras.backend.backend() == "jax" else 12


@settings(max_examples=EAGER_EXAMPLES, derandomize=True)
@given(**CASES)
@example(**LEADING_PADDING)
@example(**PAST_THE_GUARD)
def test_factored_equals_literal(**case):
    check(case, compiled=False)


@pytest.mark.jax
@settings(max_examples=3, derandomize=True)
@given(**CASES)
@example(**TYPICAL)
@example(**LEADING_PADDING)
@example(**PAST_THE_GUARD)
@pytest.mark.long
def test_forms_agree_under_xla(**case):
    check(case, compiled=True)


@pytest.fixture
def bfloat16():
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy("float32")


FEEDS = {
    "even": {**TYPICAL, "real": [True] * 13, "largest_bias": 2.0},
    "padded": {**TYPICAL, "largest_bias": 2.0},
    "causal": {**TYPICAL, "causal": True, "largest_bias": 2.0},
    "past the guard": PAST_THE_GUARD,
}
FEEDS = {feed: {**case, "largest_score": 2.0} for feed, case in FEEDS.items()}


@functools.cache
def precise_gradients(feed):
    """The literal form's in float32, by the default policy of that moment."""
    (literal, _), x, exact, defined = draw(FEEDS[feed])
    direction = draw_direction(defined, exact.shape)
    return gradients(literal, lambda call: ops.sum(ops.multiply(call(x), direction)))


@pytest.mark.jax
@pytest.mark.parametrize(
    "compiled", [False, pytest.param(True, marks=pytest.mark.long)], ids=["", "xla"]
)
@pytest.mark.parametrize("feed", FEEDS)
def test_bfloat16_is_as_precise_as_its_logits(bfloat16, feed, compiled):
    """Outputs and gradients are about as near to exact ones as the literal form's.

    bfloat16 keeps 8 bits: a rounding is off by up to u = 2^-9 of the number. Behind a
    logit stand roundings of x, a kernel, their product and the logit itself, so it is
    off by up to d = 4 u (|A0| + |b|), which moves an attention weight by a factor
    within exp(+-2d). E, w, values, product and sum are rounded once each.

    Past the guard attention is nearly one-hot, and the gradient a difference of nearly
    equal terms that are rounded apart here, together in the literal form.
    """
    case = FEEDS[feed]
    models, x, exact, defined = draw(case)
    direction = draw_direction(defined, exact.shape)
    literal, factored = (evaluate(model, x, direction, compiled) for model in models)
    unit = 2.0**-9
    moved = 4 * unit * (case["largest_score"] + case["largest_bias"])
    bound = (np.expm1(2 * moved) + 8 * unit) * np.abs(x).max()
    errors = [
        np.abs(output - exact)[:, defined].max() for output, _ in (factored, literal)
    ]
    assert errors[0] <= min(bound, 1.5 * errors[1] + 8 * unit), (errors, bound)

    keras.config.set_dtype_policy("float32")
    reference = precise_gradients(feed)
    allowed = (80 if feed == "past the guard" else 16) * unit
    for name in factored[1]:
        error, literal_error = (
            np.linalg.norm(slopes[name].astype("float32") - reference[name])
            for _, slopes in (factored, literal)
        )
        size = np.linalg.norm(reference[name])
        assert error <= 1.5 * literal_error + allowed * size, (
            name,
            error / size,
            literal_error / size,
        )
