"""Attention layers beside their definitions: their projections, positions and w^l."""

import numpy as np
import pytest
from keras import ops

from tests.models import gradients, test_attention, test_operators
from tests.models.builders import at_once, numpy
from tests.models.dense.rotary import rotated
from tests.models.forms import in_float64, key_biases
from tests.models.test_relative_positions import LENGTH, RELATIVE_POSITIONS

pytestmark = pytest.mark.jax

ROTARY = [("softmax", "rotary"), ("talking-heads", "rotary")]
RELATIVE = [("softmax", positions) for positions in RELATIVE_POSITIONS]
EACH = pytest.mark.parametrize("name, positions", ROTARY + RELATIVE)
EACH_USE = pytest.mark.parametrize("use", ["self", "causal"])
EACH_ARCHITECTURE = pytest.mark.parametrize(
    "architecture", ["transformer", "transevolve"]
)


def make(architecture, name, positions, use):
    """A layer, its input, values of each depth, and which of its tokens are real."""
    if (architecture, name) == ("transevolve", "softmax"):
        name = "factored"
    layer, depths = test_attention.make(
        architecture, {"name": name}, use, positions=positions, max_length=LENGTH
    )
    x = test_attention.normal(test_attention.BATCH, LENGTH, test_attention.WIDTH)
    values = np.stack(test_attention.draw_values(depths, LENGTH))
    mask = np.ones(x.shape[:2], bool)
    mask[1, 3:9] = mask[1, -4:] = False
    return layer, x, values, mask


def attend(layer, mask):
    """The layer as a function to (depths, batch, length, width)."""

    def call(x, values):
        state = layer(x, x, ops.convert_to_tensor(mask))
        return ops.stack([state.read(i, values[i]) for i in range(len(values))])

    return call


def definition(name, layer, positions, x, values, mask):
    """What they should give, in float64; a Transformer's values are its own."""
    weights, x = in_float64(layer), x.astype("float64")
    if "kernel" in weights:
        queries, keys, values = np.split(x @ weights["kernel"], 3, axis=-1)
        values = values[None]
        biases = np.zeros((len(x), layer.num_heads, LENGTH, 1))
        scale = (x.shape[-1] / layer.num_heads) ** -0.5
    else:
        queries, keys = x @ weights["query_kernel"], x @ weights["key_kernel"]
        biases = [key_biases(layer, keys, depth) for depth in range(len(values))]
        biases, scale = np.stack(biases, axis=-1), layer.scale
    queries, keys = (
        y.reshape(len(x), LENGTH, layer.num_heads, -1).swapaxes(1, 2)
        for y in (queries, keys)
    )
    if positions == "rotary":
        queries, keys = rotated(queries), rotated(keys)
    arrays = {f"weights/{weight}": array for weight, array in weights.items()}
    arrays |= {"queries": queries, "keys": keys, "x": x}
    arrays |= {"biases": biases, "values": values}
    return test_operators.written_out(name, layer.operator, {}, arrays, mask, scale)


@EACH
@EACH_USE
@EACH_ARCHITECTURE
def test_outputs_equal_the_definition(architecture, use, name, positions):
    layer, x, values, mask = make(architecture, name, positions, use)
    expected = definition(name, layer, positions, x, values, mask)
    outputs = numpy(at_once(attend(layer, mask))(x, values))
    test_attention.assert_near(outputs[:, mask], expected[:, mask], 1e-5)


@pytest.mark.slow
@EACH
@EACH_USE
@EACH_ARCHITECTURE
def test_gradients_equal_differences_of_the_definition(
    architecture, use, name, positions
):
    """Of the input, which queries, keys and w^l are made of."""
    layer, x, values, mask = make(architecture, name, positions, use)
    random = np.random.default_rng(1)
    direction = random.normal(size=values.shape) * mask[..., None]
    step = random.normal(size=x.shape)
    step /= np.linalg.norm(step)

    def loss(x):
        outputs = attend(layer, mask)(x, ops.convert_to_tensor(values))
        return ops.sum(outputs * ops.convert_to_tensor(direction.astype("float32")))

    def at(distance):
        moved = x.astype("float64") + distance * step
        outputs = definition(name, layer, positions, moved, values, mask)
        return np.sum(outputs * direction)

    expected = (at(1e-5) - at(-1e-5)) / 2e-5
    (slope,) = gradients.by_inputs(loss, x)
    assert np.sum(numpy(slope) * step) == pytest.approx(expected, 1e-4, 1e-4)
