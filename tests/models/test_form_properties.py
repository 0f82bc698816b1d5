"""The factored form against the literal one over shapes, masks and logits."""

import keras
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from tests.models.attention import (
    Attend,
    attention_pair,
    equation_9,
    numpy,
    set_logits,
)
from tests.models.gradients import gradients

CASES = {
    "length": st.integers(1, 17),
    "heads": st.sampled_from([1, 2, 4]),
    "depths": st.integers(1, 4),
    "causal": st.booleans(),
    "fidelity": st.sampled_from(["paper", "official"]),
    "largest_score": st.sampled_from([1.0, 10.0, 200.0]),
    # On both sides of the guard.
    "largest_bias": st.sampled_from([0.5, 15.0, 60.0, 200.0]),
    "data": st.data(),
}


def draw(length, heads, depths, causal, fidelity, largest_score, largest_bias, data):
    """Both layers with logits of those sizes, an input and a mask."""
    pair = attention_pair(16, heads, depths, causal, fidelity)
    real = data.draw(st.lists(st.booleans(), min_size=length, max_size=length))
    # A query that sees no real key has no defined output.
    real[0] = True
    mask = np.array([real, [True] * length])
    x = np.random.default_rng(length).normal(size=(2, length, 16)).astype("float32")
    # The terms that cancel would cost the literal form its precision.
    pair[0].key_time_kernel.assign(np.zeros(pair[0].key_time_kernel.shape))
    set_logits(pair, x, mask, largest_score, largest_bias)
    return pair, x, mask


def compiled(model, x):
    """The model's output by XLA, as a NumPy array."""
    if keras.backend.backend() == "jax":
        import jax

        weights = [variable.value for variable in model.trainable_variables]
        rest = [variable.value for variable in model.non_trainable_variables]
        return numpy(jax.jit(lambda x: model.stateless_call(weights, rest, x)[0])(x))
    import tensorflow as tf

    return tf.function(model, jit_compile=True)(x).numpy()


def check(case, compile_by_xla):
    (literal, factored), x, mask = draw(**case)
    models = [Attend(layer, mask) for layer in (factored, literal)]
    for model in models:
        model.build((None, None, 16))
    fast = compiled(models[0], x) if compile_by_xla else numpy(models[0](x))
    for depth in range(case["depths"]):
        exact = equation_9(literal, x.astype("float64"), mask, depth)
        np.testing.assert_allclose(fast[depth], exact, rtol=0, atol=2e-4)
    direction = np.random.default_rng(2).normal(size=fast.shape).astype("float32")

    def loss(call):
        return ops.sum(call(x) * direction)

    found, expected = (gradients(model, loss, compile_by_xla) for model in models)
    # Where the gradient is small or zero, it is a difference of terms that are not.
    rounding = 1e-5 * (1 + case["largest_score"])
    for name, gradient in found.items():
        error = np.linalg.norm(gradient - expected[name])
        size = np.linalg.norm(expected[name])
        assert error <= 1e-3 * size + rounding, (name, error, size)


@settings(max_examples=20)
@given(**CASES)
def test_forms_agree(**case):
    check(case, compile_by_xla=False)


@settings(max_examples=6)
@given(**CASES)
def test_forms_agree_under_xla(**case):
    check(case, compile_by_xla=True)


@settings(max_examples=10)
@given(compile_by_xla=st.booleans(), **CASES)
def test_bfloat16_is_as_precise_as_its_logits(compile_by_xla, **case):
    """bfloat16 keeps 8 bits: each rounding is off by up to u = 2^-9 of the number.

    Behind a logit stand roundings of x, of a kernel, of their product and of the
    logit: off by at most d = 4 u (|A0| + |b|) or so, which moves attention by a
    factor within exp(+-2d), and the output by as much of the largest value. E, w, the
    values, and the product are rounded once each, numerator and denominator apart.
    """
    (literal, factored), x, mask = draw(**case)
    low = type(factored).from_config(
        {**factored.get_config(), "dtype": "mixed_bfloat16"}
    )
    low.build((None, None, 16))
    low.set_weights(factored.get_weights())
    model = Attend(low, mask)
    model.build((None, None, 16))
    found = compiled(model, x) if compile_by_xla else numpy(model(x))
    unit = 2.0**-9
    moved = 4 * unit * (case["largest_score"] + case["largest_bias"])
    bound = (min(np.expm1(2 * moved), 2) + 8 * unit) * np.abs(x).max()
    for depth in range(case["depths"]):
        exact = equation_9(literal, x.astype("float64"), mask, depth)
        error = np.abs(found[depth].astype("float32") - exact).max()
        assert error <= bound, (error, bound)
