"""The delta rule, in chunks and at lengths, strengths and keys that are hard for it."""

import keras
import numpy as np
import pytest
from keras import ops
from ml_collections import ConfigDict

from common.errors import UserError
from models import variant_config
from models.attention import causal_chunks
from models.attention.delta import DeltaOperator
from models.attention.propagation import states_after, states_before, steps
from tests.models import gradients, test_attention
from tests.models.builders import build, numpy, tokens
from tests.models.operator_checks import (
    assert_dynamic_lengths_serve,
    assert_mixed_precision_is_near,
)
from tests.models.test_operators import (
    BATCH,
    HEADS,
    KEY_SIZE,
    LENGTH,
    assert_gradients_equal_differences,
    assert_reads_equal_the_definition,
    draw,
    make,
    padding,
    reads,
    written_out,
)

pytestmark = pytest.mark.jax

ELU = {"feature_map": "elu1", "largest_strength": 1}
DPFP = {"feature_map": "dpfp", "nu": 1, "largest_strength": 2}
# Of a head of 8 numbers 128 features, and as long chunks.
WIDE = {**DPFP, "nu": 8}
DIVIDED = {**ELU, "attention_normalisation": True}
UNNORMALISED = {**ELU, "sum_normalisation": False}
PAIRED = {
    **DeltaOperator.variants["favor"],
    "num_features": 16,
    "paired": True,
}
TANH = {**UNNORMALISED, "feature_map": "tanh"}


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(causal_chunks, "CHUNK", 4)


def each(**hyperparameters):
    return pytest.mark.parametrize(
        "hyperparameters", list(hyperparameters.values()), ids=list(hyperparameters)
    )


def assert_equals_the_definition(*arguments):
    """In outputs, which it returns, and gradients."""
    outputs = assert_reads_equal_the_definition("delta", *arguments)
    assert_gradients_equal_differences("delta", *arguments)
    return outputs


@pytest.mark.parametrize("length", [5, 8, 37])
@each(
    elu1=ELU,
    dpfp=DPFP,
    divided=DIVIDED,
    divided_dpfp={**DPFP, "attention_normalisation": True},
    unnormalised=UNNORMALISED,
    unnormalised_dpfp={**DPFP, "sum_normalisation": False},
    tanh=TANH,
)
def test_chunks_that_do_and_do_not_divide(small_chunks, hyperparameters, length):
    operator, layer = make("delta", hyperparameters, "causal", length)
    assert_equals_the_definition(operator, layer, hyperparameters, length)


@each(elu1=ELU, dpfp=DPFP)
def test_few_queries_are_the_last_of_many(small_chunks, hyperparameters):
    """In outputs and gradients, though K is written out for a few."""
    length, few, columns = 37, 3, 12
    operator, _ = make("delta", hyperparameters, "causal", length)
    random = np.random.default_rng(1)

    def some(rows, size):
        return random.normal(size=(BATCH, HEADS, rows, size)).astype("float32")

    keys, _ = operator.prepare_keys(some(length, KEY_SIZE), 1)
    queries = operator.prepare_queries(some(length, KEY_SIZE), 1)
    strengths = 1 / (1 + np.exp(some(length, 1)))
    x, y = some(length, columns), some(few, columns)
    whole_y = np.concatenate([np.zeros_like(x[:, :, few:]), y], axis=2)
    parts, whole = (
        operator.make((queries[:, :, -count:], keys, strengths), columns)
        for count in (few, length)
    )
    d_queries, *others = operator.gradient(parts, y, x)
    d_whole, *expected = operator.gradient(whole, whole_y, x)
    pairs = [
        (operator.times(parts, x), operator.times(whole, x)[:, :, -few:]),
        (
            operator.transposed_times(parts, y),
            operator.transposed_times(whole, whole_y),
        ),
        (d_queries, d_whole[:, :, -few:]),
        *zip(others, expected, strict=True),
    ]
    for found, wanted in pairs:
        found, wanted = numpy(found), numpy(wanted)
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 300, pytest.param(2000, marks=pytest.mark.long)])
@each(elu1=ELU, dpfp=DPFP, paired=PAIRED)
def test_long_texts_equal_the_definition(hyperparameters, length):
    operator, layer = make("delta", hyperparameters, "causal", length)
    assert_equals_the_definition(operator, layer, hyperparameters, length)


@pytest.mark.parametrize("strength", [-50.0, 50.0], ids=["zero", "one"])
def test_strengths_at_their_ends(small_chunks, strength):
    """Of 0 nothing is written; of 1 a key reads what was written last."""
    operator, layer = make("delta", ELU, "causal")
    operator.strength_kernel.assign(np.full(operator.strength_kernel.shape, strength))
    arrays = draw(layer)
    arrays["x"] = np.abs(arrays["x"]) + 1
    arrays["queries"] = arrays["keys"]
    outputs = assert_equals_the_definition(operator, layer, ELU, LENGTH, arrays)
    if strength < 0:
        np.testing.assert_allclose(outputs, 0, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-3])
@each(elu1=ELU, dpfp=DPFP, wide=WIDE)
def test_keys_that_repeat(hyperparameters, noise):
    """One key again and again: T takes back at each position what the one before put
    there, and its entries stay small."""
    length = 200
    operator, layer = make("delta", hyperparameters, "causal", length)
    arrays = draw(layer, length)
    keys = arrays["keys"]
    arrays["keys"] = (keys[:, :, :1] + noise * keys).astype("float32")
    assert_equals_the_definition(operator, layer, hyperparameters, length, arrays)


@pytest.mark.long
@pytest.mark.parametrize("strength", [0.5, 1, 2])
@each(elu1=ELU, dpfp=DPFP, wide=WIDE)
def test_repetitions_of_a_key(hyperparameters, strength):
    """Prints a row of the table in docs/linear_attention.md, of 1,000 positions."""
    # β is half of the largest, since its kernel is zero.
    hyperparameters = {**hyperparameters, "largest_strength": 2 * strength}
    operator, layer = make("delta", hyperparameters, "causal", 1000)
    operator.strength_kernel.assign(np.zeros(operator.strength_kernel.shape))
    errors = {}
    for times in (1, 10, 100, 1000):
        arrays, mask = draw(layer, 1000), padding(1000)
        keys = arrays["keys"][:, :, : 1000 // times]
        arrays["keys"] = np.repeat(keys, times, axis=2)
        expected = written_out("delta", operator, hyperparameters, arrays, mask)
        outputs = numpy(reads(operator, layer, arrays, mask))
        scale = max(1, np.abs(expected).max())
        errors[times] = np.abs(outputs - expected)[:, mask].max() / scale
    row = ", ".join(f"{times} times {error:.0e}" for times, error in errors.items())
    size = operator.feature_map.num_features
    print(f"\n{hyperparameters['feature_map']}, {size}, β = {strength}: {row}")
    assert max(errors.values()) < 1e-5


@each(plain=DPFP, divided={**DPFP, "attention_normalisation": True})
def test_features_that_are_all_zero(small_chunks, hyperparameters):
    operator, layer = make("delta", hyperparameters, "causal")
    arrays = draw(layer)
    arrays["keys"][:, :, 3:7] = 0
    arrays["queries"][:, :, 5] = 0
    outputs = assert_equals_the_definition(
        operator, layer, hyperparameters, LENGTH, arrays
    )
    np.testing.assert_array_equal(outputs[:, :, 5], 0)


@pytest.mark.parametrize("architecture", ["transformer", "transevolve"])
@each(divided=DIVIDED, tanh=TANH)
def test_steps_equal_the_parallel_form(recent, architecture, hyperparameters):
    config = {"name": "delta", **hyperparameters}
    test_attention.test_steps_equal_the_parallel_form(architecture, config, recent)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
def test_states_pass_as_in_a_loop(count):
    random = np.random.default_rng(0)
    transitions = random.normal(size=(2, 2, count, 3, 3)).astype("float32")
    x = random.normal(size=(2, 2, count, 3, 5)).astype("float32")
    before, after = np.zeros_like(x), np.zeros_like(x)
    for c in range(1, count):
        before[:, :, c] = (
            transitions[:, :, c - 1] @ before[:, :, c - 1] + x[:, :, c - 1]
        )
        d = count - 1 - c
        turned = transitions[:, :, d + 1].swapaxes(-1, -2)
        after[:, :, d] = turned @ after[:, :, d + 1] + x[:, :, d + 1]
    levels = steps(ops.convert_to_tensor(transitions))
    x = ops.convert_to_tensor(x)
    for states, expected in ((states_before, before), (states_after, after)):
        np.testing.assert_allclose(
            numpy(states(levels, x)), expected, rtol=1e-4, atol=1e-4
        )


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="static shapes elsewhere"
)
def test_dynamic_lengths_serve(small_chunks):
    layer, _ = test_attention.make("transformer", {"name": "delta", **ELU}, "causal")
    random = np.random.default_rng(0)
    texts = [
        random.normal(size=(2, length, layer.hidden_dim)).astype("float32")
        for length in (3, 4, 11, 30)
    ]
    assert_dynamic_lengths_serve(layer, texts)


def test_mixed_precision_is_near(small_chunks):
    config = {"name": "delta", **ELU}
    layer, _ = test_attention.make("transformer", config, "causal")
    mixed, _ = test_attention.make(
        "transformer", config, "causal", dtype="mixed_bfloat16"
    )
    x = np.random.default_rng(0).normal(size=(2, 14, layer.hidden_dim))
    assert_mixed_precision_is_near(layer, mixed, x.astype("float32"))


@pytest.mark.parametrize("feature_map, normalised", [("favor", False), ("tanh", True)])
def test_features_that_need_or_refuse_a_sum(feature_map, normalised):
    model = variant_config(f"transformer-delta-{feature_map}")
    config = ConfigDict({"model": model})
    DeltaOperator.check(config)
    config.model.attention.sum_normalisation = normalised
    expected = f"sum_normalisation: expected {not normalised} with .*{feature_map}"
    with pytest.raises(UserError, match=expected):
        DeltaOperator.check(config)


def test_one_solve_serves_all_depths(monkeypatch):
    """The forward pass makes it, and the gradient reads it again."""
    solve, sizes = ops.solve_triangular, []

    def counted(*arrays, **fields):
        sizes.append(ops.shape(arrays[0])[-1])
        return solve(*arrays, **fields)

    monkeypatch.setattr(ops, "solve_triangular", counted)
    attention = variant_config("transevolve-fullff-1-delta")["attention"]
    model = build(attention=attention, use="causal", num_blocks=2, num_depths=3)
    gradients.gradients(model, lambda call: ops.sum(ops.square(call(tokens()))))
    assert len(sizes) == 2
    # Each of three blocks of one depth makes its own.
    sizes.clear()
    model = build(attention=attention, use="causal", num_blocks=3, num_depths=1)
    model(tokens())
    assert len(sizes) == 3


def test_t_is_rounded_once(small_chunks):
    """In bfloat16 it is the rounded T of float64."""
    operator, _ = make("delta", ELU, "causal")
    random = np.random.default_rng(0)
    keys = ops.cast(random.dirichlet(np.ones(8), size=(2, 2, 4)), "bfloat16")
    strengths = ops.cast(random.uniform(size=(2, 2, 4, 1)), "bfloat16")
    solved = operator.make((keys, keys, strengths), columns=1)[7]
    keys, strengths, solved = (
        numpy(ops.cast(x, "float32")) for x in (keys, strengths, solved)
    )
    keys, strengths = keys.astype("float64"), strengths.astype("float64")
    products = np.tril(strengths * (keys @ keys.swapaxes(-1, -2)), -1)
    expected = ops.cast(np.linalg.inv(np.eye(4) + products), "bfloat16")
    expected = numpy(ops.cast(expected, "float32"))
    np.testing.assert_array_equal(solved[:, :, 0], expected)


@pytest.mark.parametrize(
    "hyperparameters", [ELU, DPFP, DIVIDED], ids=["elu1", "dpfp", "divided"]
)
def test_bfloat16_is_as_precise_as_its_features(hyperparameters):
    """Of 400 positions, as docs/linear_attention.md says."""
    length = 400
    operator, layer = make("delta", hyperparameters, "causal", length)
    arrays, mask = draw(layer, length), padding(length)
    random = np.random.default_rng(1)
    direction = random.normal(size=arrays["values"].shape) * mask[..., None]

    def outputs(dtype, *given):
        given = dict(zip(arrays, given, strict=True))
        rounded = ("queries", "keys", "x", "values")
        given |= {name: ops.cast(given[name], dtype) for name in rounded}
        return ops.cast(reads(operator, layer, given, mask), "float32")

    def slopes(dtype):
        along = ops.convert_to_tensor(direction.astype("float32"))

        def loss(*given):
            return ops.sum(outputs(dtype, *given) * along)

        return map(numpy, gradients.by_inputs(loss, *arrays.values()))

    expected = written_out("delta", operator, hyperparameters, arrays, mask)
    errors = numpy(outputs("bfloat16", *arrays.values())) - expected
    assert np.abs(errors[:, mask]).max() < 0.03 * np.abs(expected[:, mask]).max()
    for name, slope, exact in zip(
        arrays, slopes("bfloat16"), slopes("float32"), strict=True
    ):
        norms = [np.linalg.norm(x) for x in (slope - exact, exact)]
        assert norms[0] < 0.06 * norms[1], name


def test_z_grows_in_bfloat16_too():
    operator, _ = make("delta", DIVIDED, "causal")
    features = ops.full((1, 1, 1000, 4), 0.25, "bfloat16")
    queries, _ = operator.inputs(features, features)
    expected = np.tile(1 / np.arange(1, 1001)[:, None], 4)
    queries = numpy(ops.cast(queries, "float32"))[0, 0]
    np.testing.assert_allclose(queries, expected, rtol=2**-8)
