"""Derivatives of every mechanism: right, or refused; never silently wrong."""

import keras
import numpy as np
import pytest
from keras import ops

from models import ARCHITECTURES
from models.attention.feature_maps import FEATURE_MAPS
from models.layers.normalization import normalized
from tests.models.builders import at_once, numpy, randomize
from tests.shallow import is_usual

pytestmark = pytest.mark.jax

REFUSED = "expected first derivatives in reverse mode"
# Their gradients are held to differences of their definitions in test_operators, too,
# on TensorFlow.
IN_LONG_TESTS = {
    *("big-bird", "linformer", "local", "none", "rfa-gated", "sinkhorn"),
    *("state-space", "synthesizer", "talking-heads"),
}
ATTENTIONS = [
    pytest.param(
        architecture.attentions,
        {"name": name, **hyperparameters, **kind.small},
        kind,
        id=f"{key}-{name}",
        # The Transformer reads the operators that TransEvolve reads, and an operator's
        # gradient is one whatever its hyperparameters.
        marks=pytest.mark.long
        if key == "transformer"
        or number
        or (name in IN_LONG_TESTS and keras.backend.backend() == "tensorflow")
        else (),
    )
    for key, architecture in ARCHITECTURES.items()
    if architecture.attentions is not None
    for name, kind in architecture.attentions.named().items()
    for number, hyperparameters in enumerate(kind.variants.values())
    if is_usual(key, {"name": name, **hyperparameters}, kind)
]
WIDTH, LENGTH = 16, 5


def second_and_forward(scalar, x, direction):
    """Functions that give the derivative of the gradient of `scalar` at x in a
    direction, and the derivative of `scalar` itself, by the backend's own means."""
    if keras.backend.backend() == "jax":
        import jax

        def slope_along(x):
            return ops.sum(jax.grad(scalar)(x) * direction)

        return {
            "second": lambda: jax.jit(jax.grad(slope_along))(x),
            "forward": lambda: jax.jvp(scalar, (x,), (direction,))[1],
        }
    if keras.backend.backend() == "torch":
        import torch

        x = torch.tensor(x, requires_grad=True)
        along = torch.tensor(direction)

        def second():
            (slope,) = torch.autograd.grad(scalar(x), x, create_graph=True)
            return torch.autograd.grad((slope * along).sum(), x)[0]

        def forward():
            return torch.func.jvp(scalar, (x.detach(),), (along,))[1]

        return {"second": second, "forward": forward}
    import tensorflow as tf

    x, direction = map(tf.convert_to_tensor, (x, direction))

    def second():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                value = scalar(x)
            slope = tf.reduce_sum(inner.gradient(value, x) * direction)
        return outer.gradient(slope, x)

    def forward():
        with tf.autodiff.ForwardAccumulator(x, direction) as accumulator:
            value = scalar(x)
        return accumulator.jvp(value)

    return {"second": second, "forward": forward, "in a graph": tf.function(second)}


def first(scalar, x):
    if keras.backend.backend() == "jax":
        import jax

        return numpy(jax.jit(jax.grad(scalar))(x))
    if keras.backend.backend() == "torch":
        import torch

        x = torch.tensor(x, requires_grad=True)
        return numpy(torch.autograd.grad(scalar(x), x)[0])
    import tensorflow as tf

    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = scalar(x)
    return numpy(tape.gradient(value, x))


def assert_right_or_refused(scalar, x):
    direction = np.random.default_rng(1).normal(size=x.shape).astype("float32")
    step = 1e-2 / np.abs(direction).max()
    ends = (x + step * direction, x - step * direction)
    differences = {
        "forward": [numpy(at_once(scalar)(end)) for end in ends],
        "second": [first(scalar, end) for end in ends],
    }
    differences["in a graph"] = differences["second"]
    for name, derive in second_and_forward(scalar, x, direction).items():
        plus, minus = differences[name]
        expected = (plus - minus) / (2 * step)
        try:
            derivative = numpy(derive())
        except (ValueError, TypeError, RuntimeError) as error:
            # JAX and PyTorch have words of their own for forward mode.
            assert name == "forward" or REFUSED in str(error), name
        except AssertionError:
            # TensorFlow's own: a conditional in a graph has first derivatives only.
            assert name == "in a graph"
        else:
            error = np.abs(derivative - expected).max()
            assert error < 0.05 * np.abs(expected).max(), name


@pytest.mark.parametrize("attentions, config, kind", ATTENTIONS)
def test_derivatives_of_attention_are_right_or_refused(attentions, config, kind):
    layer = attentions.make(config, num_heads=2, use=kind.uses[0], max_length=LENGTH)
    layer.build((None, None, WIDTH))
    randomize(layer)
    x = np.random.default_rng(0).normal(size=(1, LENGTH, WIDTH)).astype("float32")

    def scalar(x):
        attended = layer(x, x).read(0, x)
        return ops.sum(ops.square(ops.cast(attended, "float32")))

    assert_right_or_refused(scalar, x)


def test_gradients_by_hand_are_not_differentiated():
    x = np.random.default_rng(0).normal(size=(4, WIDTH)).astype("float32")
    feature_map = FEATURE_MAPS["elu1"](WIDTH, 0)
    for function in (
        lambda x: normalized(x, ops.ones(WIDTH), ops.zeros(WIDTH), 1e-3),
        feature_map.queries,
    ):

        def scalar(x, function=function):
            return ops.sum(ops.square(function(x)))

        direction = np.ones_like(x)
        for derive in second_and_forward(scalar, x, direction).values():
            errors = (ValueError, TypeError, RuntimeError)
            with pytest.raises(errors, match=f"{REFUSED}|forward|jvp|vmap"):
                derive()


def test_one_gradient_may_be_taken_several_times():
    """As with TensorFlow's persistent tapes and JAX's `vjp`."""
    x = np.random.default_rng(0).normal(size=(4, WIDTH)).astype("float32")

    def scalar(x):
        return ops.sum(normalized(x, ops.ones(WIDTH), ops.zeros(WIDTH), 1e-3) ** 3)

    if keras.backend.backend() == "jax":
        import jax

        _, backward = jax.vjp(scalar, x)
        once, again = backward(1.0)[0], backward(1.0)[0]
    elif keras.backend.backend() == "torch":
        import torch

        x = torch.tensor(x, requires_grad=True)
        value = scalar(x)
        once, again = (
            torch.autograd.grad(value, x, retain_graph=True)[0] for _ in range(2)
        )
    else:
        import tensorflow as tf

        x = tf.convert_to_tensor(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            value = tf.function(scalar)(x)
        once, again = tape.gradient(value, x), tape.gradient(value, x)
    np.testing.assert_array_equal(numpy(once), numpy(again))
