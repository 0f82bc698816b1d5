"""Residual steps: their order, and the models that take them."""

import math

import numpy as np
import pytest
from keras import ops

from models.convert import with_attention
from models.residual_step import RESIDUAL_STEPS
from tests.models.builders import LITERAL, SMALL, TRANSFORMER, build_any, numpy, tokens
from tests.models.gradients import gradients

pytestmark = pytest.mark.jax

# Of the error's decrease with the size of a step.
ORDERS = {"euler": 1, "rk2": 2, "rk4": 4, "strang": 1}


def logistic(step, count):
    """The end of x' = x (1 - x), from 0.1 over a time of 4 in so many steps."""
    size, x = 4 / count, 0.1
    for _ in range(count):
        x = step.take(x, [lambda x, stage: size * x * (1 - x)])
    return x


@pytest.mark.parametrize("name", RESIDUAL_STEPS)
def test_the_error_falls_by_its_order(name):
    exact = 1 / (1 + 9 * math.exp(-4))
    errors = [abs(logistic(RESIDUAL_STEPS[name], n) - exact) for n in (40, 80)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[name], abs=0.15)


@pytest.mark.parametrize("name", RESIDUAL_STEPS)
def test_the_error_falls_by_its_order_where_time_enters(name):
    """x' = x cos t: an increment is evaluated at the offset that it is told."""
    step = RESIDUAL_STEPS[name]

    def end(count):
        size, x = 2 / count, 1.0
        for number in range(count):

            def increment(x, stage, number=number):
                return size * x * math.cos(size * (number + step.offsets[stage]))

            x = step.take(x, [increment])
        return x

    errors = [abs(end(n) - math.exp(math.sin(2))) for n in (20, 40)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[name], abs=0.3)


def test_strangs_step_is_symmetric():
    called = []

    def sublayer(name):
        def increment(x, stage):
            called.append((name, stage))
            return 1.0

        return increment

    x = RESIDUAL_STEPS["strang"].take(0.0, [sublayer(name) for name in "abc"])
    assert called == [("a", 0), ("b", 0), ("c", 0), ("b", 1), ("a", 1)]
    assert x == 3


@pytest.mark.parametrize("name", RESIDUAL_STEPS)
def test_the_fast_form_equals_equation_9(name):
    config = {**SMALL, "num_blocks": 1, "residual_step": name}
    literal = build_any({**config, "attention": LITERAL}, decoder=False)
    fast = with_attention(literal, "factored")
    source = tokens(length=9, padding=[(1, slice(6, None))])
    outputs, slopes = [], []
    for model in (literal, fast):
        outputs.append(numpy(model(source)))
        slopes.append(gradients(model, lambda call: ops.sum(ops.square(call(source)))))
    np.testing.assert_allclose(*outputs, rtol=0, atol=1e-4)
    for path, slope in slopes[1].items():
        scale = max(1, np.abs(slope).max())
        np.testing.assert_allclose(slope, slopes[0][path], rtol=0, atol=1e-4 * scale)


@pytest.mark.parametrize(
    "config", [SMALL, TRANSFORMER], ids=["transevolve", "transformer"]
)
def test_another_step_gives_something_else(config):
    source = tokens(length=9)
    one_layer = {"num_blocks": 1, "num_depths": 1, "num_layers": 1}
    config = config | {name: one_layer[name] for name in one_layer if name in config}
    outputs = [
        numpy(build_any({**config, "residual_step": name}, decoder=False)(source))
        for name in (None, *RESIDUAL_STEPS)
    ]
    np.testing.assert_array_equal(*outputs[:2])
    for first in range(1, len(outputs)):
        for second in range(first):
            if (first, second) != (1, 0):
                assert np.abs(outputs[first] - outputs[second]).max() > 1e-3
