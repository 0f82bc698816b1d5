"""Operators beside their definitions, written out as matrices in float64."""

import importlib.util
import math

import keras
import numpy as np
import pytest
from keras import ops

from benchmarks.traced_products import products, taken_operations
from models.attention import OPERATORS, reading
from models.attention.heads import masked
from tests.models import gradients
from tests.models.builders import numpy
from tests.models.dense import Drawn
from tests.models.graphs import other_operations

pytestmark = pytest.mark.jax

BATCH, HEADS, LENGTH, SIZE, READS = 2, 2, 14, 6, 3
# The numbers of keys are not those of values: TransEvolve has twice as many.
KEY_SIZE, WIDTH = 8, HEADS * SIZE
STEP = 1e-5
# With each operator's own settings such a text has several blocks, chunks or windows.
LONG = 512


def _each(condition=lambda kind: True, small=True, every=True):
    """The operators as parameters, of their own settings unless `small`, and `long` but
    for one of each unless `every`."""
    cases = [
        pytest.param(
            name,
            {**hyperparameters, **(kind.small if small else {})},
            use,
            id="-".join(filter(None, (name, suffix, use))),
            marks=() if every or _is_first(kind, suffix, use) else pytest.mark.long,
        )
        for name, kind in OPERATORS.items()
        for suffix, hyperparameters in _hyperparameters(name, kind)
        for use in kind.uses
        if use != "cross" and condition(kind)
    ]
    return pytest.mark.parametrize("name, hyperparameters, use", cases)


def _hyperparameters(name, kind):
    """Those of the variants, and of sum normalisation where none has it."""
    yield from kind.variants.items()
    if name == "linear":
        for suffix, hyperparameters in kind.variants.items():
            normalised = {**hyperparameters, "sum_normalisation": True}
            yield f"{suffix}-normalised".removeprefix("-"), normalised


def _is_first(kind, suffix, use):
    """Whether it is the first variant, causal if it may be: then most are cut."""
    first_use = "causal" if "causal" in kind.uses else kind.uses[0]
    return (suffix, use) == (next(iter(kind.variants)), first_use)


def make(name, hyperparameters, use, length=LENGTH):
    """An operator, and the layer that has its weights, which are random."""
    operator = OPERATORS[name](HEADS, use, 0, **hyperparameters)
    layer = keras.layers.Layer()
    layer.hidden_dim, layer.max_length = WIDTH, length
    operator.build(layer, KEY_SIZE)
    return operator, randomized(layer)


def randomized(layer):
    random = np.random.default_rng(3)
    for weight in layer.trainable_weights:
        noise = random.normal(scale=0.3, size=weight.shape)
        weight.assign(numpy(weight) + noise)
    return layer


def draw(layer, length=LENGTH):
    """{name: float32 array} of all that a read depends on."""
    random = np.random.default_rng(0)
    shapes = {
        "queries": (BATCH, HEADS, length, KEY_SIZE),
        "keys": (BATCH, HEADS, length, KEY_SIZE),
        "x": (BATCH, length, WIDTH),
        "biases": (BATCH, HEADS, length, READS),
        "values": (READS, BATCH, length, WIDTH),
    }
    arrays = {name: random.normal(size=shape) for name, shape in shapes.items()}
    for weight in layer.trainable_weights:
        arrays[f"weights/{weight.name}"] = numpy(weight)
    return {name: np.asarray(array, "float32") for name, array in arrays.items()}


def padding(length=LENGTH):
    """The second text ends before the others."""
    mask = np.ones((BATCH, length), bool)
    mask[1, length - 4 :] = False
    return mask


SCALE = 0.4


def reads(operator, layer, arrays, mask):
    """All reads, (reads, batch, length, width)."""
    arrays = {key: ops.convert_to_tensor(array) for key, array in arrays.items()}
    weights = [
        (weight, arrays[f"weights/{weight.name}"]) for weight in layer.trainable_weights
    ]
    with keras.StatelessScope(state_mapping=weights):
        mask = ops.convert_to_tensor(mask)
        queries = operator.prepare_queries(arrays["queries"], SCALE)
        keys, logs = operator.prepare_keys(arrays["keys"], SCALE, mask)
        biases = arrays["biases"] if logs is None else arrays["biases"] + logs
        x = arrays["x"]
        inputs = operator.inputs(queries, keys, operator.further_inputs(x, x, mask))
        state = reading.start(
            operator, inputs, masked(biases, mask), mask, ops.shape(x)[1], SIZE
        )
        values = arrays["values"]
        return ops.stack([state.read(i, values[i]) for i in range(READS)])


def definition(name):
    """The module that writes an operator out."""
    return f"tests.models.dense.{name.replace('-', '_')}"


def written_out(name, operator, hyperparameters, arrays, mask, scale=SCALE):
    """What the reads should give, in float64."""
    arrays = {key: np.asarray(array, "float64") for key, array in arrays.items()}
    weights = {
        key.removeprefix("weights/"): array
        for key, array in arrays.items()
        if key.startswith("weights/")
    }
    module = importlib.import_module(definition(name))
    drawn = Drawn(
        arrays["queries"],
        arrays["keys"],
        arrays["x"],
        mask,
        scale,
        operator.causal,
        weights,
        hyperparameters,
        operator,
    )
    kernel = module.kernel(drawn)
    if kernel.ndim == 4:
        kernel = kernel[..., None]
    biases = np.moveaxis(arrays["biases"], 3, 0)  # (reads, batch, heads, m)
    values = arrays["values"]
    values = values.reshape(*values.shape[:3], operator.num_heads, -1)
    values = np.einsum("rbmhs->rbhms", values)
    if operator.divides:
        weights = np.exp(biases - biases.max())
    else:
        weights = 2 / (1 + np.exp(-biases))
    weights = (weights * mask[:, None])[..., None]
    outputs = np.einsum("bhnms,rbhms->rbhns", kernel, weights * values)
    if operator.divides:
        sums = np.einsum("bhnms,rbhms->rbhns", kernel, weights)
        if hasattr(module, "least"):
            sums = np.maximum(sums, module.least(drawn) @ weights)
        outputs = outputs / np.where(sums, sums, 1)
    outputs = np.einsum("rbhns->rbnhs", outputs)
    return outputs.reshape(arrays["values"].shape)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_its_definition(name):
    module = definition(name)
    path = f"{module.replace('.', '/')}.py"
    assert importlib.util.find_spec(module), (
        f"the operator {name!r} has no definition: write kernel(drawn), from the paper "
        f"that it is of, in {path}"
    )


@_each()
def test_reads_equal_the_definition(name, hyperparameters, use):
    operator, layer = make(name, hyperparameters, use)
    assert_reads_equal_the_definition(name, operator, layer, hyperparameters)


def assert_reads_equal_the_definition(
    name, operator, layer, hyperparameters, length=LENGTH, arrays=None
):
    """Of `arrays`, or of those that `draw` gives. Returns the outputs."""
    arrays = draw(layer, length) if arrays is None else arrays
    mask = padding(length)
    expected = written_out(name, operator, hyperparameters, arrays, mask)
    outputs = numpy(reads(operator, layer, arrays, mask))
    # Queries at padding are of no use to anybody.
    expected = expected[:, mask]
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(outputs[:, mask], expected, rtol=0, atol=1e-5 * scale)
    return outputs


@pytest.mark.slow
@_each()
def test_gradients_equal_differences_of_the_definition(name, hyperparameters, use):
    operator, layer = make(name, hyperparameters, use)
    assert_gradients_equal_differences(name, operator, layer, hyperparameters)


def assert_gradients_equal_differences(
    name, operator, layer, hyperparameters, length=LENGTH, arrays=None
):
    """Of `arrays`, or of those that `draw` gives."""
    arrays = draw(layer, length) if arrays is None else arrays
    mask = padding(length)
    random = np.random.default_rng(1)
    direction = random.normal(size=arrays["values"].shape) * mask[..., None]
    names = list(arrays)

    def loss(*given):
        outputs = reads(operator, layer, dict(zip(names, given, strict=True)), mask)
        return ops.sum(outputs * ops.convert_to_tensor(direction.astype("float32")))

    slopes = gradients.by_inputs(loss, *arrays.values())
    for changed, slope in zip(names, slopes, strict=True):
        step = random.normal(size=arrays[changed].shape)
        # Features that are divided by their sum leap where all of them are zero.
        step *= arrays[changed] != 0
        step /= np.linalg.norm(step)

        def at(distance, changed=changed, step=step):
            moved = arrays[changed].astype("float64") + distance * step
            moved = {**arrays, changed: moved}
            outputs = written_out(name, operator, hyperparameters, moved, mask)
            return np.sum(outputs * direction)

        expected = (at(STEP) - at(-STEP)) / (2 * STEP)
        derivative = 0.0 if slope is None else float(np.sum(numpy(slope) * step))
        assert derivative == pytest.approx(expected, 1e-4, 1e-4), changed


ON_TENSORFLOW = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="graphs are TensorFlow's"
)


def graph_of_gradients(name, hyperparameters, use, length=LENGTH):
    """The graph of those of all reads by all that they depend on."""
    import tensorflow as tf

    operator, layer = make(name, hyperparameters, use, length)
    arrays, mask = draw(layer, length), padding(length)

    @tf.function(autograph=False)
    def slopes(*given):
        with tf.GradientTape() as tape:
            tape.watch(given)
            outputs = reads(
                operator, layer, dict(zip(arrays, given, strict=True)), mask
            )
        return tape.gradient(outputs, given, unconnected_gradients="zero")

    return slopes.get_concrete_function(*map(tf.constant, arrays.values())).graph


@ON_TENSORFLOW
@pytest.mark.slow
@_each(lambda kind: kind.linear_time, small=False, every=False)
def test_products_and_arrays_grow_linearly(name, hyperparameters, use):
    sizes = []
    for length in (LONG, 2 * LONG):
        graph = graph_of_gradients(name, hyperparameters, use, length)
        shapes = [
            tensor.shape.as_list()
            for operation in taken_operations(graph)
            for tensor in operation.outputs
            if tensor.shape.is_fully_defined()
        ]
        assert not any(shape[-2:] == [length, length] for shape in shapes)
        largest = max(map(math.prod, shapes))
        assert largest < BATCH * HEADS * length**2
        sizes.append((sum(one.operations for one in products(graph)), largest))
    # What is quadratic grows four times.
    assert (np.divide(sizes[1], sizes[0]) <= 2.5).all()


@ON_TENSORFLOW
@pytest.mark.long
@_each(lambda kind: kind.divides)
def test_no_sum_of_a_reading_apart_has_three_terms(name, hyperparameters, use):
    """TensorFlow would make a temporary variable for it in steps that do without."""
    graph = graph_of_gradients(name, hyperparameters, use)
    apart = list(other_operations(graph))
    assert apart
    assert all(len(one.inputs) < 3 for one in apart if one.type == "AddN")
