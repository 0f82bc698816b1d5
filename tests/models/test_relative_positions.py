"""Relative positions: what scores have added for the distance of query and key."""

import keras
import numpy as np
import pytest
from keras import ops
from ml_collections import ConfigDict

import models
from common.errors import UserError
from models import variant_config
from models.attention import reading
from models.attention.heads import split_heads
from models.attention.relative_positions import FARTHEST, RELATIVE_POSITIONS
from models.convert import with_attention
from tests.models import gradients, test_attention, test_operators
from tests.models.builders import (
    EACH_ARCHITECTURE,
    LITERAL,
    SMALL,
    TRANSFORMER,
    build_any,
    compiled,
    numpy,
    tokens,
)
from tests.models.operator_checks import (
    assert_dynamic_lengths_serve,
    assert_mixed_precision_is_near,
)
from tests.models.test_positions import after_padding

pytestmark = pytest.mark.jax

# Some keys of it are farther away than numbers and vectors are told apart.
LENGTH = 2 * FARTHEST + 4
EACH = pytest.mark.parametrize("positions", RELATIVE_POSITIONS)
EACH_USE = pytest.mark.parametrize("use", ["self", "causal"])
# The window of 24 tells no more distances apart, and cuts the text in two blocks.
OPERATORS = {"softmax": {}, "local": {"window": 24}}
EACH_OPERATOR = pytest.mark.parametrize("name", OPERATORS)
LAYERS = [
    *(("transformer", "softmax"), ("transevolve", "factored")),
    ("transformer", "local"),
]
# Its blocks do not begin where a shifted text's do.
LOCAL = {"name": "local", "window": 7}
EACH_LAYER = pytest.mark.parametrize("architecture, name", LAYERS)


def make_operator(name, positions, use):
    operator, layer = test_operators.make(name, OPERATORS[name], use, LENGTH)
    operator.relative = RELATIVE_POSITIONS[positions](
        test_operators.HEADS, use == "causal", 0
    )
    operator.relative.build(layer, test_operators.KEY_SIZE)
    test_operators.randomized(layer)
    return name, operator, layer, OPERATORS[name], LENGTH


def make_layer(architecture, name, positions, use, **arguments):
    config = {"name": name, **OPERATORS.get(name, {})}
    options = {"positions": positions, **arguments}
    return test_attention.make(architecture, config, use, **options)


@EACH
@EACH_USE
@EACH_OPERATOR
def test_reads_equal_the_definition(name, use, positions):
    test_operators.assert_reads_equal_the_definition(
        *make_operator(name, positions, use)
    )


@EACH
@EACH_USE
@EACH_OPERATOR
def test_gradients_equal_differences_of_the_definition(name, use, positions):
    test_operators.assert_gradients_equal_differences(
        *make_operator(name, positions, use)
    )


@EACH
@EACH_USE
@EACH_OPERATOR
def test_each_way_of_reading_has_the_same_gradients(name, use, positions):
    _, operator, layer, *_ = make_operator(name, positions, use)
    arrays = test_operators.draw(layer, LENGTH)
    weights = layer.trainable_weights
    sizes = (test_operators.BATCH, test_operators.HEADS, LENGTH, test_operators.SIZE)
    direction = np.random.default_rng(1).normal(size=sizes).astype("float32")
    values = ops.convert_to_tensor(arrays["values"][0])
    by_head = split_heads(values, test_operators.HEADS)
    biases = ops.zeros((*sizes[:3], 1))

    def at_once(inputs):
        return operator.read_once(inputs, None, by_head)

    def apart(inputs):
        return operator.read_apart(inputs, biases, by_head)

    def by_hand(inputs):
        state = reading.start(operator, inputs, biases, None, LENGTH, sizes[3])
        return split_heads(state.read(0, values), test_operators.HEADS)

    def slopes(read):
        def loss(queries, keys, *now):
            mapping = list(zip(weights, now, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                attended = read(operator.inputs(queries, keys))
            return ops.sum(attended * ops.convert_to_tensor(direction))

        given = arrays["queries"], arrays["keys"], *map(numpy, weights)
        return gradients.by_inputs(loss, *given)

    expected = slopes(by_hand)
    for read in (at_once, apart):
        for slope, other in zip(slopes(read), expected, strict=True):
            np.testing.assert_allclose(numpy(slope), numpy(other), rtol=0, atol=1e-4)


@EACH
@pytest.mark.parametrize(
    "use", [pytest.param("self", marks=pytest.mark.long), "causal"]
)
@pytest.mark.parametrize("attention", [{}, LOCAL], ids=["softmax", "local"])
@EACH_ARCHITECTURE
def test_a_shifted_text_gives_the_same(config, attention, use, positions):
    config = {**config, "positions": positions, "use": use}
    config["attention"] = attention or config["attention"]
    model, x = build_any(config, decoder=False), test_attention.normal(2, 24, 32)
    outputs, shifted = numpy(model.encoder(x)), after_padding(model, x)
    np.testing.assert_allclose(shifted, outputs, rtol=0, atol=1e-4)
    reordered = numpy(model.encoder(x[:, ::-1].copy()))[:, ::-1]
    assert np.abs(reordered - outputs).max() > 1e-2


# Those of all three, by the slots of a cache.
@pytest.mark.parametrize(
    "architecture, name, positions",
    [
        ("transformer", "softmax", "relative-keys"),
        ("transevolve", "factored", "relative-bias"),
        ("transformer", "local", "relative-sinusoids"),
        *(
            pytest.param(*layer, positions, marks=pytest.mark.long)
            for layer in LAYERS
            for positions in RELATIVE_POSITIONS
        ),
    ],
)
def test_steps_equal_the_parallel_form(architecture, name, positions, recent):
    layer, depths = make_layer(architecture, name, positions, "causal")
    x = test_attention.normal(2, LENGTH, 32)
    values = test_attention.draw_values(depths, LENGTH)
    expected = test_attention.in_parallel(layer)(x, x, values)
    stepped = test_attention.recurrently(
        layer, x[:, None], [v[:, None] for v in values]
    )
    test_attention.assert_near(stepped[:, :, 0], expected)


@EACH
@EACH_LAYER
def test_queries_follow_earlier_keys(architecture, name, positions):
    layer, depths = make_layer(architecture, name, positions, "causal")
    x = test_attention.normal(2, LENGTH, 32)
    values = test_attention.draw_values(depths, LENGTH)
    call = test_attention.in_parallel(layer)
    expected, attended = call(x, x, values), call(x[:, -5:], x, values)
    test_attention.assert_near(attended, expected[:, :, -5:], 1e-5)


@EACH
def test_the_literal_form_has_them_too(positions):
    config = {**SMALL, "num_blocks": 1, "positions": positions}
    literal = build_any({**config, "attention": LITERAL}, decoder=False)
    fast, source = with_attention(literal, "factored"), tokens(length=24)
    np.testing.assert_allclose(
        numpy(fast(source)), numpy(literal(source)), rtol=0, atol=1e-4
    )


@EACH
@pytest.mark.parametrize(
    "config",
    [SMALL, pytest.param(TRANSFORMER, marks=pytest.mark.long)],
    ids=["transevolve", "transformer"],
)
def test_xla_gives_the_same(config, positions):
    options = {"use": "causal", "num_blocks": 1, "num_layers": 1}
    options = {name: options[name] for name in options if name in {*config, "use"}}
    model = build_any({**config, **options, "positions": positions}, decoder=False)
    inputs = (tokens(length=24, padding=[(1, slice(20, None))]),)
    outputs, _ = compiled(model, inputs)
    np.testing.assert_allclose(outputs, numpy(model(*inputs)), rtol=0, atol=1e-4)


@EACH
def test_mixed_precision_gives_nearly_the_same(positions):
    layer, _ = make_layer("transformer", "softmax", positions, "self")
    mixed, _ = make_layer(
        "transformer", "softmax", positions, "self", dtype="mixed_bfloat16"
    )
    x = test_attention.normal(2, LENGTH, 32)
    assert_mixed_precision_is_near(layer, mixed, x)


@EACH
def test_cross_attention_has_none(positions):
    layer, _ = make_layer("transformer", "softmax", positions, "cross")
    assert layer.operator.relative is None
    assert not any("relative" in weight.name for weight in layer.weights)


@EACH
@pytest.mark.parametrize("architecture", ["transformer", "transevolve"])
def test_attentions_without_scores_by_distance_refuse_them(architecture, positions):
    base = {"transformer": "transformer", "transevolve": "transevolve-fullff-1"}
    refused = set()
    for name in models.variants():
        model = variant_config(name)
        if models.base_of(name) != base[architecture]:
            continue
        kind = models.attention_kind(model)
        sizes = {"hidden_dim": 32, "num_heads": 4, "ffn_dim": 64}
        model = {**model, **sizes, "positions": positions}
        config = ConfigDict({"model": model, "data": {"max_length": 64}})
        if kind.takes_relative_positions:
            models.check(config)
            continue
        refused.add(model["attention"]["name"])
        with pytest.raises(UserError, match="model.positions: expected one of sinus.*"):
            models.check(config)
        with pytest.raises(ValueError, match="takes no relative positions"):
            options = {"use": kind.uses[0], "positions": positions, "max_length": 64}
            test_attention.make(architecture, model["attention"], **options)
    assert {"linear", "synthesizer", "reformer", "none"} <= refused


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="lengths are static elsewhere"
)
@EACH
@EACH_USE
def test_a_length_may_be_known_only_when_it_runs(positions, use):
    layer, _ = make_layer("transformer", "softmax", positions, use)
    texts = [test_attention.normal(2, length, 32) for length in (LENGTH, 5)]
    assert_dynamic_lengths_serve(layer, texts)
