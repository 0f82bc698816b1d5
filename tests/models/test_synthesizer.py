"""Synthesizer: gradients of its scores, what texts share, and what its lengths are."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from benchmarks.traced_products import taken_operations
from models.attention import OPERATORS
from models.attention.cache import SlotMap, grow
from models.attention.synthesizer import SynthesizerOperator
from models.attention.synthetic_scores import SCORES, FactorisedDense
from models.transevolve.attention import TimeEvolvingAttention
from models.transformer.attention import ProjectedAttention
from tests.models import gradients, test_operators
from tests.models.builders import numpy, randomize
from tests.models.operator_checks import (
    assert_dynamic_lengths_serve,
    assert_equal_with_gradients,
    assert_mixed_precision_is_near,
)
from tests.models.test_operators import BATCH, HEADS, LENGTH, READS, SIZE, WIDTH

RANKS = {"factorised-random": {"rank": 3}}
EACH = pytest.mark.parametrize("scores", SCORES)
SHARED = pytest.mark.parametrize("scores", ["random", "factorised-random"])


def hyperparameters(scores, mixture=False):
    return {"scores": scores, "mixture": mixture, **RANKS.get(scores, {})}


def make(scores, mixture=False, use="self", length=LENGTH):
    given = hyperparameters(scores, mixture)
    return test_operators.make("synthesizer", given, use, length)


def attention(scores, layer=ProjectedAttention, **options):
    options = {"max_length": LENGTH, **hyperparameters(scores), **options}
    layer = layer(num_heads=HEADS, operator="synthesizer", **options)
    layer.build((None, None, WIDTH))
    return randomize(layer)


def text(length=LENGTH):
    x = np.random.default_rng(0).normal(size=(BATCH, length, WIDTH))
    return ops.convert_to_tensor(x.astype("float32"))


@pytest.mark.jax
@EACH
def test_with_the_share_of_dot_products_alone_it_is_softmax_and_so_are_its_gradients(
    scores,
):
    operator, layer = make(scores, mixture=True)
    arrays, mask = test_operators.draw(layer), test_operators.padding()
    arrays["weights/shares"] = np.zeros_like(arrays["weights/shares"])
    arrays["weights/shares"][1] = 200
    softmax = OPERATORS["softmax"](HEADS, "self", 0)
    names = ["queries", "keys", "biases", "values"]

    def by(operator):
        def call(*given):
            given = {**arrays, **dict(zip(names, given, strict=True))}
            return test_operators.reads(operator, layer, given, mask)

        return call

    given = [arrays[name] for name in names]
    assert_equal_with_gradients(by(operator), by(softmax), *given)


@EACH
@pytest.mark.parametrize("mixture", [False, True], ids=["alone", "mixed"])
def test_gradients_by_hand_are_those_of_the_scores(scores, mixture):
    operator, layer = make(scores, mixture)
    arrays = {
        k: ops.convert_to_tensor(x) for k, x in test_operators.draw(layer).items()
    }
    queries = operator.prepare_queries(arrays["queries"], 0.4)
    further = operator.further_inputs(arrays["x"], arrays["x"])
    inputs = operator.inputs(queries, arrays["keys"], further)
    inputs = [np.array(numpy(x)) for x in inputs]
    # Where all texts share the scores, each text has slopes of its own by `read_apart`.
    slopes = np.random.default_rng(1).normal(size=(BATCH, HEADS, LENGTH, LENGTH))
    slopes = ops.convert_to_tensor(slopes.astype("float32"))
    floats = [i for i, x in enumerate(inputs) if x.dtype == "float32"]

    def total(*given):
        of_all = [ops.convert_to_tensor(x) for x in inputs]
        for i, x in zip(floats, given, strict=True):
            of_all[i] = x
        return ops.sum(operator.scores(*of_all)[0] * slopes)

    expected = gradients.by_inputs(total, *(inputs[i] for i in floats))
    by_hand = operator.by_scores(slopes, *map(ops.convert_to_tensor, inputs))
    assert [i for i, x in enumerate(by_hand) if x is not None] == floats
    for i, gradient in zip(floats, expected, strict=True):
        np.testing.assert_allclose(
            numpy(by_hand[i]), numpy(gradient), rtol=0, atol=1e-4
        )


@pytest.mark.jax
@SHARED
def test_biases_far_apart_are_right_where_texts_share_the_scores(scores):
    operator, layer = make(scores)
    arrays, mask = test_operators.draw(layer), test_operators.padding()
    arrays["biases"] = 300 * arrays["biases"]
    names = ["biases", *(name for name in arrays if name.startswith("weights/"))]
    direction = np.random.default_rng(1).normal(size=arrays["values"].shape)
    direction = ops.convert_to_tensor(direction.astype("float32"))

    def softmax(given):
        biases = ops.where(mask[:, None, :, None], given["biases"], -1e9)
        biases = ops.transpose(biases, (3, 0, 1, 2))[:, :, :, None]
        weights = [(w, given[f"weights/{w.name}"]) for w in layer.trainable_weights]
        with keras.StatelessScope(state_mapping=weights):
            kernel = operator.scores(
                *operator.further_inputs(arrays["x"], arrays["x"])
            )[0]
        kernel = ops.softmax(kernel + biases, axis=-1)
        values = ops.reshape(arrays["values"], (READS, BATCH, LENGTH, HEADS, SIZE))
        outputs = ops.einsum("rbhqk,rbkhs->rbqhs", kernel, values)
        return ops.reshape(outputs, (READS, BATCH, LENGTH, WIDTH))

    def by_reads(given):
        return test_operators.reads(operator, layer, given, mask)

    def slopes(function):
        def total(*given):
            given = {**arrays, **dict(zip(names, given, strict=True))}
            return ops.sum(function(given) * direction)

        return gradients.by_inputs(total, *(arrays[name] for name in names))

    attended, expected = (numpy(each(arrays)) for each in (by_reads, softmax))
    np.testing.assert_allclose(attended, expected, rtol=0, atol=1e-5)
    for by_hand, expected in zip(slopes(by_reads), slopes(softmax), strict=True):
        np.testing.assert_allclose(numpy(by_hand), numpy(expected), rtol=0, atol=1e-4)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="graphs are TensorFlow's"
)
@SHARED
@pytest.mark.parametrize("layer", [ProjectedAttention, TimeEvolvingAttention])
def test_what_texts_share_is_not_made_for_each(scores, layer):
    import tensorflow as tf

    length = 48  # no other size of the model
    layer = attention(scores, layer, max_length=length)

    @tf.function(autograph=False)
    def slopes(x, mask):
        with tf.GradientTape() as tape:
            attended = layer(x, x, mask).read(0, x)
        return tape.gradient(attended, [w.value for w in layer.trainable_weights])

    mask = np.ones((BATCH, length), bool)
    graph = slopes.get_concrete_function(text(length), tf.constant(mask)).graph
    sizes = {
        math.prod(tensor.shape)
        for operation in taken_operations(graph)
        for tensor in operation.outputs
        if tensor.shape.rank and tensor.shape[-2:] == [length, length]
    }
    assert sizes == {HEADS * length**2}


def test_scores_need_no_more_projections_than_they_are_made_of():
    projections = {
        (scores, mixture): SynthesizerOperator(
            HEADS, "self", 0, **hyperparameters(scores, mixture)
        ).projections
        for scores in SCORES
        for mixture in (False, True)
    }
    assert projections["random", False] == ()
    assert projections["factorised-random", False] == ()
    assert projections["dense", False] == projections["factorised-dense", False]
    assert projections["dense", False] == ("query",)
    assert {projections[scores, True] for scores in SCORES} == {("query", "key")}
    names = {
        weight.name for weight in attention("random", TimeEvolvingAttention).weights
    }
    assert "key_kernel" in names and "query_kernel" not in names
    kernel = attention("dense").query_key_value.kernel
    assert kernel.shape == (WIDTH, 2 * WIDTH)


def test_two_factors_have_a_number_for_each_position_and_few_more():
    def sizes(max_length):
        scores = FactorisedDense()
        scores.build(lambda name, shape, deviation: shape, 4, max_length)
        return scores.sizes

    for max_length in (1, 2, 3, 10, 48, 49, 50, 53, 4001):
        a, b = sizes(max_length)
        assert (a - 1) * b < max_length <= a * b
        assert b < 2 * max_length**0.5 + 1
    for max_length in (512, 1000, 2000, 3000, 4000, 16_000):
        assert math.prod(sizes(max_length)) == max_length


@EACH
def test_scores_vary_at_first_by_about_one(scores):
    operator = SynthesizerOperator(HEADS, "self", 0, **hyperparameters(scores))
    layer = keras.layers.Layer()
    layer.max_length = 300
    operator.build(layer, 32)
    # The Transformer's queries of normalised input have the variance 1/2.
    queries = np.random.default_rng(0).normal(0, 0.7, (1, HEADS, 300, 32))
    queries = ops.convert_to_tensor(queries.astype("float32"))
    x = ops.zeros((1, 300, WIDTH))
    further = operator.further_inputs(x, x)
    inputs = operator.inputs(operator.prepare_queries(queries, 1), None, further)
    assert 0.4 < numpy(operator.scores(*inputs)[0]).std() < 1.6


@EACH
def test_mixed_precision_gives_nearly_the_same(scores):
    layer, mixed = attention(scores), attention(scores, dtype="mixed_bfloat16")
    assert_mixed_precision_is_near(layer, mixed, text())


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="lengths are static elsewhere"
)
@EACH
def test_a_length_may_be_known_only_when_it_runs(scores):
    layer = attention(scores, use="causal", mixture=True)
    assert_dynamic_lengths_serve(layer, [text(LENGTH), text(5)])


@pytest.mark.jax
@EACH
@pytest.mark.parametrize("mixture", [False, True], ids=["alone", "mixed"])
def test_decoding_keeps_keys_for_a_mixture_alone(scores, mixture):
    layer = attention(scores, TimeEvolvingAttention, use="causal", mixture=mixture)
    cache = layer.empty_cache(1, 2)
    assert (cache.keys == ()) is not mixture
    # Up to the last position that has weights, with room for more.
    visible = SlotMap(ops.zeros((1, 2, 2 * LENGTH), "int32"))
    cache = grow(cache, 2 * LENGTH)
    position = ops.convert_to_tensor(LENGTH - 1)
    visible = visible.enter(position).visible(position)
    x = text()[:1, :2]
    state = layer.step(x, layer.constants(), cache, visible, position)
    assert np.isfinite(numpy(state.read(0, x))).all()
    with pytest.raises(ValueError, match=f"at most max_length={LENGTH}, got 15"):
        layer.step(x, layer.constants(), cache, visible, LENGTH)
