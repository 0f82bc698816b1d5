"""Linear attention of both models against docs/linear_attention.md, in float64."""

import numpy as np
import pytest
from keras import ops

from models.attention.causal_chunks import CHUNK
from models.transevolve.attention import TimeEvolvingAttention
from models.transformer.attention import ProjectedAttention
from tests.models.builders import at_once, numpy, randomize
from tests.models.forms import in_float64, key_biases
from tests.models.gradients import by_inputs
from tests.models.linear_oracle import assert_near, oracle, oracle_gradients

pytestmark = pytest.mark.jax

WIDTH, HEADS, DEPTHS, BATCH, LENGTH = 32, 4, 3, 2, CHUNK + 9


class Elu:
    """phi, and the gradient that it hands back."""

    arguments = {"feature_map": "elu1"}

    def phi(self, x, layer):
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))

    def back(self, x, gradient, layer):
        return gradient * np.where(x > 0, 1, np.exp(np.minimum(x, 0)))


class Dpfp:
    def __init__(self, nu):
        self.arguments = {"feature_map": "dpfp", "nu": nu}
        self.shifts = range(1, nu + 1)

    def phi(self, x, layer):
        r = np.maximum(np.concatenate([x, -x], axis=-1), 0)
        return np.concatenate([r * np.roll(r, -i, axis=-1) for i in self.shifts], -1)

    def back(self, x, gradient, layer):
        r = np.maximum(np.concatenate([x, -x], axis=-1), 0)
        total = np.zeros_like(r)
        parts = np.split(gradient, len(self.shifts), axis=-1)
        for i, part in zip(self.shifts, parts, strict=True):
            total += part * np.roll(r, -i, axis=-1) + np.roll(part * r, i, axis=-1)
        above, below = np.split(total * (r > 0), 2, axis=-1)
        return above - below


class Favor:
    """exp(w x - |x|^2 / 2): what is taken out of queries and keys is in here."""

    arguments = {
        "feature_map": "favor",
        "num_features": 24,
        "orthogonal": True,
        "redraw_every": 0,
        "kernel": "softmax",
    }

    def phi(self, x, layer):
        squares = (x**2).sum(axis=-1, keepdims=True)
        return np.exp(x @ layer.operator.feature_map.vectors[0].T - squares / 2)

    def back(self, x, gradient, layer):
        by_exponents = gradient * self.phi(x, layer)
        total = by_exponents.sum(axis=-1, keepdims=True)
        return by_exponents @ layer.operator.feature_map.vectors[0] - x * total


EACH_MAP = pytest.mark.parametrize(
    "map_", [Elu(), Dpfp(1), Dpfp(3), Favor()], ids=["elu1", "dpfp", "dpfp-3", "favor"]
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
        return ops.stack([state.read(i, v) for i, v in enumerate(values)])

    return numpy(call(x, context, list(values)))


def by_head(x):
    return np.moveaxis(x.reshape(*x.shape[:-1], HEADS, -1), -2, -3)


def merged(x):
    """Inverse of `by_head`."""
    x = np.moveaxis(x, -3, -2)
    return x.reshape(*x.shape[:-2], -1)


def weighted(map_, layer, queries, keys, biases, values, real, causal):
    """What is attended at each depth, by `oracle`, of arrays with heads merged.

    Args:
      biases: (batch, heads, keys, depths).
    """
    features = (map_.phi(by_head(x), layer) for x in (queries, keys))
    biases = np.where(real[:, None, :, None], biases, -np.inf)
    return merged(oracle(*features, biases, by_head(values), causal))


def time_evolving(map_, use, fidelity="paper"):
    """A layer, its kernels in float64, and the root of the scale of its scores."""
    layer = TimeEvolvingAttention(
        num_heads=HEADS,
        operator="linear",
        num_depths=DEPTHS,
        use=use,
        fidelity=fidelity,
        **map_.arguments,
    )
    layer.build((None, None, WIDTH))
    randomize(layer)
    weights = in_float64(layer)
    size = (2 * WIDTH if fidelity == "official" else WIDTH) / HEADS
    return layer, weights["query_kernel"], weights["key_kernel"], size**-0.25


def biases_of(layer, keys):
    """b^l of all depths, (batch, heads, keys, depths), of K."""
    return np.stack([key_biases(layer, keys, i) for i in range(DEPTHS)], axis=-1)


@EACH_MAP
@EACH_USE
@pytest.mark.parametrize("fidelity", ["paper", "official"])
def test_a_time_evolving_layer_equals_the_definition(map_, use, fidelity):
    layer, query, key, root = time_evolving(map_, use, fidelity)
    x, context, real = inputs(use)
    values = np.random.default_rng(2).normal(size=(DEPTHS, *context.shape))
    queries, keys = x @ query, context @ key
    biases = biases_of(layer, keys)
    assert np.ptp(biases, axis=2).mean() > 1
    queries, keys = root * queries, root * keys
    causal = use == "causal"
    expected = weighted(map_, layer, queries, keys, biases, values, real, causal)
    found = attended(layer, x, context, values.astype("float32"), real)
    assert_near(found, expected)


@EACH_MAP
@EACH_USE
def test_gradients_of_time_evolving(map_, use):
    """By what queries come from, and by what keys come from."""
    layer, query, key, root = time_evolving(map_, use)
    x, context, real = inputs(use)
    random = np.random.default_rng(2)
    values = random.normal(size=(DEPTHS, *context.shape)).astype("float32")
    direction = random.normal(size=(DEPTHS, *x.shape)).astype("float32")
    queries, keys = by_head(root * x @ query), by_head(root * context @ key)
    biases = biases_of(layer, context @ key)
    by_queries, by_keys, by_biases, _ = oracle_gradients(
        map_.phi(queries, layer),
        map_.phi(keys, layer),
        np.where(real[:, None, :, None], biases, -np.inf),
        by_head(values),
        by_head(direction),
        use == "causal",
    )
    by_queries = root * merged(map_.back(queries, by_queries, layer))
    by_keys = root * merged(map_.back(keys, by_keys, layer))
    # b^l is a product of K.
    directions = biases_of(layer, np.eye(2 * WIDTH)[None])[0]
    by_keys += np.einsum("bhnl,hdl->bnd", by_biases, directions)

    def scalar(x, context):
        state = layer(x, context, real)
        depths = [state.read(i, values[i]) for i in range(DEPTHS)]
        return ops.sum(ops.multiply(ops.stack(depths), direction))

    by_x, by_context = by_inputs(scalar, x, context)
    assert_near(numpy(by_x), by_queries @ query.T, 1e-4)
    assert_near(numpy(by_context), by_keys @ key.T, 1e-4)


def linear_transformer(map_, use):
    """A layer, and its kernels in float64, scaled where it scales what they give."""
    layer = ProjectedAttention(
        num_heads=HEADS, operator="linear", use=use, **map_.arguments
    )
    layer.build((None, None, WIDTH))
    kernels = [numpy(weight).astype("float64") for weight in layer.weights]
    query, key, value = np.split(np.concatenate(kernels, axis=1), 3, axis=1)
    scale = (WIDTH / HEADS) ** -0.25 if layer.operator.feature_map.is_softmax else 1
    return layer, scale * query, scale * key, value


@EACH_MAP
@EACH_USE
def test_the_linear_transformer(map_, use):
    layer, query, key, value = linear_transformer(map_, use)
    x, context, real = inputs(use)
    expected = weighted(
        map_,
        layer,
        x @ query,
        context @ key,
        np.zeros((BATCH, HEADS, LENGTH, 1)),
        (context @ value)[None],
        real,
        use == "causal",
    )
    assert_near(attended(layer, x, context, [context], real), expected)


@pytest.mark.parametrize("map_", [Elu(), Dpfp(1), Dpfp(3)])
def test_without_time_it_is_the_linear_transformer(map_):
    """One depth of one head, whose head has as many numbers: it is twice as wide."""
    evolving = TimeEvolvingAttention(num_heads=1, operator="linear", **map_.arguments)
    evolving.build((None, None, WIDTH))
    evolving.time_coefficients.assign(0 * evolving.time_coefficients)
    kernels = evolving.query_kernel, evolving.key_kernel
    query, key = (evolving.scale**0.5 * numpy(kernel) for kernel in kernels)
    linear = ProjectedAttention(num_heads=1, operator="linear", **map_.arguments)
    linear.build((None, None, 2 * WIDTH))
    kernel = np.concatenate([query, key, np.eye(WIDTH, 2 * WIDTH)], axis=1)
    wider = (0, WIDTH)
    linear.query_key_value.kernel.assign(np.pad(kernel, (wider, (0, 0))))
    x, *_ = inputs("self")
    padded = np.pad(x, ((0, 0), (0, 0), wider))
    expected = attended(linear, padded, padded, [padded])[..., :WIDTH]
    assert_near(attended(evolving, x, x, [x]), expected)


@EACH_MAP
@pytest.mark.parametrize("use", ["self", "causal"])
def test_gradients_go_through_features(map_, use):
    """By the input, from which queries, keys and values come."""
    layer, query, key, value = linear_transformer(map_, use)
    x, _, real = inputs(use)
    direction = np.random.default_rng(3).normal(size=x.shape).astype("float32")
    expected = np.zeros(x.shape)
    queries, keys = by_head(x @ query), by_head(x @ key)
    by_queries, by_keys, _, by_values = oracle_gradients(
        map_.phi(queries, layer),
        map_.phi(keys, layer),
        np.where(real[:, None, :, None], np.zeros((BATCH, HEADS, LENGTH, 1)), -np.inf),
        by_head(x @ value)[None],
        by_head(direction)[None],
        use == "causal",
    )
    for kernel, gradient in (
        (query, map_.back(queries, by_queries, layer)),
        (key, map_.back(keys, by_keys, layer)),
        (value, by_values[0]),
    ):
        expected += merged(gradient) @ kernel.T

    def scalar(x):
        state = layer(x, x, real)
        return ops.sum(ops.multiply(state.read(0, x), direction))

    (found,) = by_inputs(scalar, x)
    assert_near(numpy(found), expected, 1e-4)
