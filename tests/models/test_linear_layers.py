"""Linear attention of both models against docs/attention.md, in float64."""

import numpy as np
import pytest
from keras import ops

from models.attention.linear import LinearAttention
from models.attention.linear_evolving import LinearEvolvingAttention
from models.attention.linear_fast import CHUNK
from tests.models.builders import at_once, numpy, randomize
from tests.models.forms import in_float64, key_biases
from tests.models.linear_oracle import assert_near, oracle

pytestmark = pytest.mark.jax

WIDTH, HEADS, DEPTHS, BATCH, LENGTH = 32, 4, 3, 2, CHUNK + 9


def elu1(x):
    return np.where(x > 0, x + 1, np.exp(x))


def dpfp(x, nu):
    r = np.maximum(np.concatenate([x, -x], axis=-1), 0)
    return np.concatenate([r * np.roll(r, -i, axis=-1) for i in range(1, nu + 1)], -1)


EACH_MAP = pytest.mark.parametrize(
    "phi, feature_map",
    [
        (elu1, {"feature_map": "elu1"}),
        (lambda x: dpfp(x, 1), {"feature_map": "dpfp", "nu": 1}),
        (lambda x: dpfp(x, 3), {"feature_map": "dpfp", "nu": 3}),
    ],
    ids=["elu1", "dpfp", "dpfp-3"],
)
EACH_USE = pytest.mark.parametrize("use", ["self", "causal", "cross"])


def inputs(use):
    """Where queries and where keys come from, and which of these are real."""
    random = np.random.default_rng(1)
    context = random.normal(size=(BATCH, LENGTH, WIDTH)).astype("float32")
    x = context
    if use == "cross":
        x = random.normal(size=(BATCH, 11, WIDTH)).astype("float32")
    real = np.ones((BATCH, LENGTH), bool)
    real[1, :3] = real[1, -20:] = False
    return x, context, real


def attended(layer, x, context, values, real=None):
    """At each depth: (depths, batch, queries, width)."""

    @at_once
    def call(x, context, values):
        state = layer(x, context, real)
        return ops.stack([layer.attend(state, i, v) for i, v in enumerate(values)])

    return numpy(call(x, context, list(values)))


def by_head(x):
    return np.moveaxis(x.reshape(*x.shape[:-1], HEADS, -1), -2, -3)


def weighted(phi, queries, keys, biases, values, real, causal):
    """What is attended at each depth, by `oracle`, of arrays with heads merged.

    Args:
      biases: (batch, heads, keys, depths).
    """
    features = (phi(by_head(x)) for x in (queries, keys))
    biases = np.where(real[:, None, :, None], biases, -np.inf)
    found = np.moveaxis(oracle(*features, biases, by_head(values), causal), -3, -2)
    return found.reshape(*found.shape[:-2], -1)


@EACH_MAP
@EACH_USE
@pytest.mark.parametrize("fidelity", ["paper", "official"])
def test_time_evolving(phi, feature_map, use, fidelity):
    layer = LinearEvolvingAttention(
        HEADS, DEPTHS, use, fidelity=fidelity, **feature_map
    )
    layer.build((None, None, WIDTH))
    randomize(layer)
    x, context, real = inputs(use)
    values = np.random.default_rng(2).normal(size=(DEPTHS, *context.shape))
    weights = in_float64(layer)
    queries, keys = x @ weights["query_kernel"], context @ weights["key_kernel"]
    biases = np.stack([key_biases(layer, keys, i) for i in range(DEPTHS)], axis=-1)
    assert np.ptp(biases, axis=2).mean() > 1
    size = (2 * WIDTH if fidelity == "official" else WIDTH) / HEADS
    root = size**-0.25  # of the scale of the scores
    expected = weighted(
        phi, root * queries, root * keys, biases, values, real, use == "causal"
    )
    found = attended(layer, x, context, values.astype("float32"), real)
    assert_near(found, expected)


@EACH_MAP
@EACH_USE
def test_the_linear_transformer(phi, feature_map, use):
    layer = LinearAttention(HEADS, 1, use, **feature_map)
    layer.build((None, None, WIDTH))
    x, context, real = inputs(use)
    kernels = [numpy(weight).astype("float64") for weight in layer.weights]
    kernels = np.concatenate(kernels, axis=1)
    query, key, value = np.split(kernels, 3, axis=1)
    expected = weighted(
        phi,
        x @ query,
        context @ key,
        np.zeros((BATCH, HEADS, LENGTH, 1)),
        (context @ value)[None],
        real,
        use == "causal",
    )
    assert_near(attended(layer, x, context, [context], real), expected)


@EACH_MAP
def test_without_time_it_is_the_linear_transformer(phi, feature_map):
    """One depth of one head, whose head has as many numbers: it is twice as wide."""
    evolving = LinearEvolvingAttention(1, **feature_map)
    evolving.build((None, None, WIDTH))
    evolving.time_coefficients.assign(0 * evolving.time_coefficients)
    kernels = evolving.query_kernel, evolving.key_kernel
    query, key = (evolving.scale**0.5 * numpy(kernel) for kernel in kernels)
    linear = LinearAttention(1, **feature_map)
    linear.build((None, None, 2 * WIDTH))
    kernel = np.concatenate([query, key, np.eye(WIDTH, 2 * WIDTH)], axis=1)
    wider = (0, WIDTH)
    linear.query_key_value.kernel.assign(np.pad(kernel, (wider, (0, 0))))
    x, *_ = inputs("self")
    padded = np.pad(x, ((0, 0), (0, 0), wider))
    expected = attended(linear, padded, padded, [padded])[..., :WIDTH]
    assert_near(attended(evolving, x, x, [x]), expected)
