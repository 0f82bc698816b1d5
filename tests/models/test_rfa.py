"""Random feature attention: what it estimates, its bound and its gates."""

import keras
import numpy as np
import pytest
from keras import ops

from models.attention import causal_chunks, linear
from models.attention.feature_maps import SineFeatures
from models.attention.heads import masked, merge_heads, split_heads
from tests.models.builders import at_once, numpy
from tests.models.dense import masked_softmax
from tests.models.dense import rfa as definition
from tests.models.gradients import by_inputs
from tests.models.test_operators import (
    BATCH,
    HEADS,
    KEY_SIZE,
    LENGTH,
    READS,
    SIZE,
    WIDTH,
    draw,
    make,
    padding,
    reads,
    written_out,
)

# So few that texts of some tokens have chunks, and that the bound is large.
FEW = {"num_vectors": 4}
EACH_CAUSAL = pytest.mark.parametrize("name", ["rfa", "rfa-gated"])


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def estimates(queries, keys, num_vectors, deviation, seed):
    """Of queries and keys (batch, heads, n, KEY_SIZE)."""
    feature_map = SineFeatures(queries.shape[1], KEY_SIZE, seed, num_vectors)
    layer = keras.layers.Layer()
    feature_map.build(layer)
    feature_map.deviation.assign(np.full(feature_map.deviation.shape, deviation))
    queries, keys = (
        numpy(feature_map.queries(x.astype("float32"))) for x in (queries, keys)
    )
    return queries @ keys.swapaxes(-1, -2) / num_vectors


@pytest.mark.parametrize("deviation", [1.0, 2.0])
def test_the_error_falls_with_the_root_of_the_number_of_vectors(deviation):
    queries, keys = np.random.default_rng(0).normal(size=(2, 1, 2, 30, KEY_SIZE))
    scores = unit(queries) @ unit(keys).swapaxes(-1, -2)
    exact = np.exp(deviation**2 * (scores - 1))
    errors = []
    for num_vectors in (16, 64, 256):
        drawn = (
            estimates(queries, keys, num_vectors, deviation, seed) for seed in range(8)
        )
        squares = np.mean([(estimate - exact) ** 2 for estimate in drawn])
        errors.append(np.sqrt(squares))
        # The largest deviation, but for what the draw of the vectors adds.
        assert errors[-1] < 1.1 * (2 * num_vectors) ** -0.5
    slope = np.polyfit(np.arange(3) * np.log(4), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)


def with_deviation(arrays, deviation):
    """All of sigma is alike."""
    name = "weights/deviation"
    return {**arrays, name: np.full_like(arrays[name], deviation)}


@pytest.mark.parametrize(
    "use", ["self", pytest.param("causal", marks=pytest.mark.long)]
)
def test_with_many_vectors_it_is_near_a_softmax_of_unit_vectors(use):
    operator, layer = make("rfa", {"num_vectors": 4096}, use)
    deviation, mask = 1.0, padding()
    arrays = with_deviation(draw(layer), deviation)
    arrays["biases"] *= 0
    attended = numpy(reads(operator, layer, arrays, mask))
    scores = unit(arrays["queries"]) @ unit(arrays["keys"]).swapaxes(-1, -2)
    visible = np.broadcast_to(mask[:, None, None], scores.shape)
    if use == "causal":
        visible = visible & np.tri(LENGTH, dtype=bool)
    weights = masked_softmax(deviation**2 * scores, visible)
    values = arrays["values"].reshape(READS, BATCH, LENGTH, HEADS, SIZE)
    expected = np.einsum("bhnm,rbmhs->rbnhs", weights, values)
    expected = expected.reshape(READS, BATCH, LENGTH, WIDTH)
    error = np.abs(attended - expected)[:, mask]
    assert error.max() < 0.15
    assert error.mean() < 0.02


def test_no_length_of_queries_or_keys_acts():
    operator, layer = make("rfa", FEW, "causal")
    arrays, mask = draw(layer), padding()
    longer = {**arrays, "queries": 10 * arrays["queries"], "keys": arrays["keys"] / 10}
    attended = (numpy(reads(operator, layer, x, mask)) for x in (arrays, longer))
    np.testing.assert_allclose(*attended, rtol=0, atol=1e-5)


def use_chunks_of(size, monkeypatch):
    for module in (causal_chunks, linear):
        monkeypatch.setattr(module, "CHUNK", size)


def slopes(operator, layer, arrays, mask, call=reads):
    """Those of all that reads depend on."""
    direction = np.random.default_rng(1).normal(size=arrays["values"].shape)
    direction = ops.convert_to_tensor((direction * mask[..., None]).astype("float32"))

    def loss(*given):
        outputs = call(operator, layer, dict(zip(arrays, given, strict=True)), mask)
        return ops.sum(outputs * direction)

    by_all = at_once(lambda *given: by_inputs(loss, *given))(*arrays.values())
    return dict(zip(arrays, by_all, strict=True))


def assert_equal_slopes(slopes, expected, tolerance=1e-4):
    for name, slope in slopes.items():
        if slope is None or expected[name] is None:
            assert slope is expected[name], name
            continue
        slope, exact = numpy(slope), numpy(expected[name])
        least = tolerance * max(1, np.abs(exact).max())
        np.testing.assert_allclose(slope, exact, rtol=0, atol=least, err_msg=name)


@pytest.mark.parametrize(
    "name, size",
    [
        ("rfa", 2),
        ("rfa", 5),
        pytest.param("rfa-gated", 2, marks=pytest.mark.jax),
        ("rfa-gated", 5),
    ],
)
def test_chunks_and_groups_of_them_change_nothing(name, size, monkeypatch):
    """14 tokens are 7 chunks in groups of groups, or 3 of which the last is padded."""
    operator, layer = make(name, FEW, "causal")
    arrays, mask = draw(layer), padding()
    expected = slopes(operator, layer, arrays, mask)
    use_chunks_of(size, monkeypatch)
    exact = written_out(name, operator, FEW, arrays, mask)
    attended = numpy(reads(operator, layer, arrays, mask))
    np.testing.assert_allclose(attended[:, mask], exact[:, mask], rtol=0, atol=1e-5)
    assert_equal_slopes(slopes(operator, layer, arrays, mask), expected)


@EACH_CAUSAL
def test_sums_below_the_bound_count_as_the_bound(name, monkeypatch):
    """Where deviations are so large that estimates are noise but for equal vectors."""
    operator, layer = make(name, FEW, "causal")
    arrays, mask = with_deviation(draw(layer), 20), padding()
    bounded = written_out(name, operator, FEW, arrays, mask)[:, mask]
    attended = numpy(reads(operator, layer, arrays, mask))[:, mask]
    np.testing.assert_allclose(attended, bounded, rtol=0, atol=1e-4)
    # No estimate is above 1.
    largest = np.abs(arrays["values"]).max() * np.sqrt(2 * FEW["num_vectors"])
    assert np.abs(attended).max() < largest
    monkeypatch.setattr(definition, "least", lambda drawn: 0.0 * drawn.visible())
    unbounded = written_out(name, operator, FEW, arrays, mask)[:, mask]
    assert np.abs(unbounded).max() > largest


def apart(operator, layer, arrays, mask):
    """All reads by the way that is always right."""
    arrays = {name: ops.convert_to_tensor(array) for name, array in arrays.items()}
    with keras.StatelessScope(
        state_mapping=[
            (weight, arrays[f"weights/{weight.name}"])
            for weight in layer.trainable_weights
        ]
    ):
        mask = ops.convert_to_tensor(mask)
        queries = operator.prepare_queries(arrays["queries"], 1)
        keys, _ = operator.prepare_keys(arrays["keys"], 1, mask)
        further = operator.further_inputs(arrays["x"], arrays["x"], mask)
        inputs = operator.inputs(queries, keys, further)
        biases = masked(arrays["biases"], mask)
        outputs = []
        for number in range(READS):
            values = split_heads(arrays["values"][number], HEADS)
            one = biases[..., number : number + 1]
            outputs.append(merge_heads(operator.read_apart(inputs, one, values)))
        return ops.stack(outputs)


@pytest.mark.parametrize(
    "name, use", [("rfa", "self"), ("rfa", "causal"), ("rfa-gated", "causal")]
)
def test_reading_apart_equals_reading(name, use, monkeypatch):
    operator, layer = make(name, FEW, use)
    arrays, mask = draw(layer), padding()
    expected = numpy(reads(operator, layer, arrays, mask))[:, mask]
    by_reading = slopes(operator, layer, arrays, mask)
    use_chunks_of(4, monkeypatch)
    outputs = numpy(apart(operator, layer, arrays, mask))[:, mask]
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-5)
    assert_equal_slopes(slopes(operator, layer, arrays, mask, apart), by_reading)


@EACH_CAUSAL
def test_a_row_whose_weights_underflow_is_right(name):
    """The largest biases come last, some 200 above the first."""
    operator, layer = make(name, FEW, "causal")
    arrays, mask = draw(layer), padding()
    arrays["biases"] = np.sort(60 * arrays["biases"], axis=2)
    expected = written_out(name, operator, FEW, arrays, mask)[:, mask]
    attended = numpy(reads(operator, layer, arrays, mask))[:, mask]
    np.testing.assert_allclose(attended, expected, rtol=0, atol=1e-4)


def with_gates(arrays, bias):
    """All gates are sigmoid(bias)."""
    kernel = np.zeros_like(arrays["weights/gate_kernel"])
    biases = np.full_like(arrays["weights/gate_bias"], bias)
    return {**arrays, "weights/gate_kernel": kernel, "weights/gate_bias": biases}


def test_equal_gates_give_a_moving_average():
    """K_ij = phi(q_i) . phi(k_j) (1 - g) g^(i - j), whose first factor cancels."""
    operator, layer = make("rfa-gated", FEW, "causal")
    arrays, mask = draw(layer), np.ones((BATCH, LENGTH), bool)
    arrays = {**with_gates(arrays, 1.0), "biases": 0 * arrays["biases"]}
    plain, plain_layer = make("rfa", FEW, "causal")
    # The weights of the keys of a query, e^(b_j) = g^(-j), are those of no gate.
    logs = np.arange(LENGTH, dtype="float32") * np.log1p(np.exp(-1.0))
    falling = {**arrays, "biases": arrays["biases"] + logs[:, None]}
    falling["biases"] = falling["biases"].astype("float32")
    gated = numpy(reads(operator, layer, arrays, mask))
    expected = numpy(reads(plain, plain_layer, falling, mask))
    np.testing.assert_allclose(gated, expected, rtol=0, atol=1e-5)


def test_gates_that_forget_nothing_or_all_give_the_plain_form_or_the_values():
    operator, layer = make("rfa-gated", FEW, "causal")
    plain, plain_layer = make("rfa", FEW, "causal")
    arrays, mask = draw(layer), padding()
    open_gates = numpy(reads(operator, layer, with_gates(arrays, 15.0), mask))
    expected = numpy(reads(plain, plain_layer, arrays, mask))
    np.testing.assert_allclose(
        open_gates[:, mask], expected[:, mask], rtol=0, atol=1e-4
    )
    equal = {**arrays, "keys": arrays["queries"]}  # so K_ii = 1 - g
    forgetting = numpy(reads(operator, layer, with_gates(equal, -200.0), mask))
    np.testing.assert_allclose(
        forgetting[:, mask], arrays["values"][:, mask], rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("bias", [-200.0, 200.0])
def test_extreme_gates_have_finite_slopes(bias, monkeypatch):
    use_chunks_of(4, monkeypatch)
    operator, layer = make("rfa-gated", FEW, "causal")
    arrays, mask = with_gates(draw(layer), bias), padding()
    for name, slope in slopes(operator, layer, arrays, mask).items():
        assert slope is None or np.isfinite(numpy(slope)).all(), name


def test_padding_between_tokens_forgets_nothing():
    operator, layer = make("rfa-gated", FEW, "causal")
    arrays = draw(layer)
    mask = np.ones((BATCH, LENGTH), bool)
    mask[:, 5:9] = False
    attended = numpy(reads(operator, layer, arrays, mask))[:, mask]
    short = {
        name: array if name.startswith("weights") else array.compress(mask[0], axis)
        for (name, array), axis in zip(
            arrays.items(), (2, 2, 1, 2, 2, *[None] * 3), strict=True
        )
    }
    all_real = np.ones((BATCH, LENGTH - 4), bool)
    expected = numpy(reads(operator, layer, short, all_real))[:, all_real]
    np.testing.assert_allclose(attended, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("count", [4, 37])
def test_sums_over_chunks_decay(count, after, monkeypatch):
    use_chunks_of(4, monkeypatch)
    random = np.random.default_rng(0)
    x, decays = (
        random.normal(size=(1, 2, count, 3)),
        -random.exponential(size=(1, 2, count, 1)),
    )
    expected = np.zeros_like(x)
    for i in range(count):
        for j in range(count):
            first, last = (i, j) if after else (j, i)
            if first < last:
                over = np.exp(decays[:, :, first + 1 : last].sum(axis=2))
                expected[:, :, i] += over * x[:, :, j]
    sums = causal_chunks.sums_after if after else causal_chunks.sums_before
    summed = numpy(sums(x.astype("float32"), decays.astype("float32")))
    np.testing.assert_allclose(summed, expected, rtol=0, atol=1e-5)
