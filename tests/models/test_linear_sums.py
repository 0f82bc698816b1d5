"""Linear attention's sums against the n x n matrix written out, in float64."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from models.attention import causal_chunks, linear, reading
from models.attention.causal_chunks import CHUNK
from models.attention.heads import LOWEST, merge_heads, split_heads
from models.attention.linear import CHUNKS, SHORT, SUMS
from tests.models.builders import at_once, numpy
from tests.models.gradients import by_inputs
from tests.models.linear_oracle import (
    DEPTHS,
    FEATURES,
    SIZE,
    assert_near,
    draw,
    given_features,
    masked,
    oracle,
    oracle_gradients,
    ordered,
)

pytestmark = pytest.mark.jax


def attended(queries, keys, biases, values, causal, dtype="float32"):
    """At each depth, of features and values of a type; and `is_safe` of the state."""
    queries, keys, values = (ops.cast(x, dtype) for x in (queries, keys, values))
    operator = given_features("causal" if causal else "self")
    operator.num_heads = queries.shape[1]
    mask = biases[:, 0, :, 0] > LOWEST
    length = queries.shape[2]
    state = reading.start(operator, (queries, keys), biases, mask, length, SIZE)
    outputs = []
    for depth in range(values.shape[0]):
        output = state.read(depth, merge_heads(values[depth]))
        outputs.append(split_heads(output, operator.num_heads))
    return ops.stack(outputs), state.is_safe


def by_xla(function):
    """Compiles a function of arrays."""
    import tensorflow as tf

    return tf.function(function, jit_compile=True, autograph=False)


def compute(queries, keys, biases, values, causal, dtype="float32", wrap=at_once):
    """The output in float32, and whether the fast evaluation served."""

    @wrap
    def call(*arrays):
        outputs, sound = attended(*arrays, causal, dtype)
        assert keras.backend.standardize_dtype(outputs.dtype) == dtype
        return ops.cast(outputs, "float32"), sound

    outputs, sound = call(queries, keys, masked(biases), values)
    return numpy(outputs), bool(numpy(sound))


def gradients(arrays, direction, causal, dtype="float32", wrap=at_once):
    """Of sum(direction * output), by queries, keys, biases and values."""
    queries, keys, biases, values = arrays
    inputs = (queries, keys, masked(biases), values)

    def scalar(*inputs):
        outputs, _ = attended(*inputs, causal, dtype)
        return ops.sum(ops.multiply(ops.cast(outputs, "float32"), direction))

    def slopes(*inputs):
        return by_inputs(scalar, *inputs)

    return [numpy(x) for x in wrap(slopes)(*map(ops.convert_to_tensor, inputs))]


def assert_gradients(arrays, causal, tolerance=1e-4, least=0.0, **options):
    """Those by all four inputs are the oracle's, for a random slope of the output."""
    queries, keys, biases, values = arrays
    shape = (*values.shape[:3], queries.shape[2], values.shape[-1])
    direction = np.random.default_rng(5).normal(size=shape).astype("float32")
    expected = oracle_gradients(*arrays, direction, causal)
    found = gradients(arrays, direction, causal, **options)
    # At a feature that is zero there is no slope to follow: what made it zero has none.
    counting = (queries > 0, keys > 0, biases > -np.inf, True)
    for slope, wanted, counts in zip(found, expected, counting, strict=True):
        assert_near(slope * counts, wanted * counts, tolerance, least)


def use_chunks_of(size, monkeypatch):
    for module in (causal_chunks, linear):
        monkeypatch.setattr(module, "CHUNK", size)


# Short ones, sums, and chunks.
LENGTHS = (1, 8, CHUNK, CHUNK + 1, 3 * CHUNK - 5)


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("spread", [1, 200])
@pytest.mark.parametrize("zeros", [0.0, 0.7])
def test_outputs_are_the_sums_in_float64(length, spread, zeros, causal):
    arrays = draw(length, spread, zeros, padding=0.2)
    found, _ = compute(*arrays, causal)
    assert_near(found, oracle(*arrays, causal))


def one_head(length, spread):
    """Of one head and depth: the oracle has all pairs.

    Args:
      spread: of biases, or "late" where the largest come last.
    """
    late = spread == "late"
    arrays = draw(length, 1 if late else spread, padding=0.2)
    if late:
        arrays[2] = ordered(arrays[2])
    queries, keys, biases, values = arrays
    one = np.s_[:1, :1]
    return queries[one], keys[one], biases[*one, :, :1], values[:1, *one]


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("spread", [1, 200, "late"])
# No size of chunks divides 3001.
@pytest.mark.parametrize("length", [3001, pytest.param(4000, marks=pytest.mark.long)])
def test_long_texts_equal_the_oracle(length, spread, causal):
    arrays = one_head(length, spread)
    found, _ = compute(*arrays, causal)
    assert_near(found, oracle(*arrays, causal))


@pytest.mark.slow
@pytest.mark.parametrize(
    "spread, causal",
    [
        (1, False),
        ("late", True),
        pytest.param(1, True, marks=pytest.mark.long),
        pytest.param("late", False, marks=pytest.mark.long),
    ],
)
def test_gradients_of_long_texts(spread, causal):
    assert_gradients(one_head(4000, spread), causal)


def test_chunks_waste_nothing_where_a_size_divides_the_length():
    for length in (1, 24, CHUNK, 4 * CHUNK, 4000):
        assert length % causal_chunks.chunk_size(length) == 0
    assert causal_chunks.chunk_size(24) == 24
    assert causal_chunks.chunk_size(4000) == 125
    # Of a prime number, as many chunks as of the largest size.
    assert causal_chunks.chunk_size(CHUNK + 3) == CHUNK // 2 + 2
    # Of a length that is known when it runs, the largest, and no padding of short ones.
    for length, size in ((0, 1), (24, 24), (300, CHUNK)):
        found = causal_chunks.chunk_size(ops.convert_to_tensor(length))
        assert numpy(found) == size


def test_forms_have_the_fewest_operations():
    order_of, width = linear.order_of, DEPTHS * (SIZE + 1)
    # The harmonic mean of f and of all columns is 9.
    assert order_of(9, 9, FEATURES, width, False) == SHORT
    assert order_of(10, 10, FEATURES, width, False) == SUMS
    assert order_of(1, 100, FEATURES, width, False) == SHORT
    assert order_of(CHUNK, CHUNK, FEATURES, width, True) == SHORT
    assert order_of(CHUNK + 1, CHUNK + 1, FEATURES, width, True) == CHUNKS
    # Another map may have so many features that longer texts are short.
    assert order_of(150, 150, 1000, width, True) == CHUNKS
    assert order_of(150, 150, 1000, 1000, True) == SHORT
    # Not known before it runs.
    assert order_of(None, None, FEATURES, width, False) == SUMS
    assert order_of(None, None, FEATURES, width, True) == CHUNKS


@pytest.mark.parametrize("length", [8, 5 * 4, 25 * 4, 103])
@pytest.mark.parametrize("spread", [1, 200])
def test_more_chunks_than_one_product_takes(length, spread, monkeypatch):
    """So they go in groups, and 25 of them in groups of groups.

    At length 8 the fast evaluation is one product, and the safe one has two chunks.
    """
    use_chunks_of(4, monkeypatch)
    arrays = draw(length, spread, zeros=0.3, padding=0.2)
    found, _ = compute(*arrays, True)
    assert_near(found, oracle(*arrays, True))
    assert_gradients(arrays, True)


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("late", [False, True])
def test_the_largest_bias_wipes_out_no_other_row(causal, late):
    """Early keys small and late ones large, and the other way round."""
    arrays = draw(2 * CHUNK + 3)
    arrays[2] = ordered(arrays[2], late)
    found, sound = compute(*arrays, causal)
    assert_near(found, oracle(*arrays, causal))
    assert sound == (not (causal and late))
    assert_gradients(arrays, causal)


def test_the_fast_evaluation_serves_what_is_usual():
    """Padding, and rows of nothing but padding, do not cost it."""
    for causal in (False, True):
        for zeros in (0.0, 0.7):
            arrays = draw(CHUNK + 9, 5, zeros, padding=0.3)
            arrays[2][0] = -np.inf
            arrays[0][1, :, 3] = 0  # a query without features
            found, sound = compute(*arrays, causal)
            assert sound
            assert (found[:, 0] == 0).all() and (found[:, 1, :, 3] == 0).all()
            assert_near(found, oracle(*arrays, causal))


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("spread", [1, 200])
@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("length", [1, 7, CHUNK + 11])
def test_gradients_are_those_of_the_sums_in_float64(spread, zeros, length, causal):
    assert_gradients(draw(length, spread, zeros, padding=0.2), causal)


@pytest.mark.parametrize("spread", [1, 200])
@pytest.mark.parametrize("num_queries", [1, 40, CHUNK + 7])
def test_cross_attention_equals_the_oracle(num_queries, spread):
    """As many queries as keys, fewer, and more."""
    arrays = draw(40, spread, zeros=0.3, padding=0.2, num_queries=num_queries)
    found, _ = compute(*arrays, False)
    assert_near(found, oracle(*arrays, False))
    assert_gradients(arrays, False)


@pytest.mark.long
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX always compiles, PyTorch never"
)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("spread", [1, 200])
def test_xla_gives_the_same(spread, causal):
    arrays = draw(CHUNK + 9, spread, padding=0.2)
    found, _ = compute(*arrays, causal, wrap=by_xla)
    assert_near(found, oracle(*arrays, causal))
    assert_gradients(arrays, causal, wrap=by_xla)


@settings(max_examples=20)
@given(
    length=st.integers(1, 2 * CHUNK + 1),
    num_queries=st.integers(1, CHUNK + 9),
    spread=st.floats(0, 200),
    late=st.sampled_from([None, False, True]),
    zeros=st.floats(0, 0.95),
    padding=st.floats(0, 1),
    use=st.sampled_from(["self", "causal", "cross"]),
    seed=st.integers(0, 2**31),
)
def test_any_keys_give_what_the_oracle_gives(
    length, num_queries, spread, late, zeros, padding, use, seed
):
    causal, num_queries = use == "causal", num_queries if use == "cross" else None
    if late is not None:  # which spreads them by 200 each way
        spread = min(spread, 1)
    arrays = draw(length, spread, zeros, padding, seed, num_queries)
    if late is not None:
        arrays[2] = ordered(arrays[2], late)
    found, _ = compute(*arrays, causal)
    assert np.isfinite(found).all()
    assert_near(found, oracle(*arrays, causal))
    # Where each query sees one key alone, all that queries and keys get is rounding.
    assert_gradients(arrays, causal, least=1.0)


@pytest.mark.parametrize(
    "chunk, causal", [(CHUNK, False), (CHUNK, True), (8, True)], ids=str
)
@pytest.mark.parametrize("spread", [5, 200])
def test_bfloat16_is_as_precise_as_its_features(spread, chunk, causal, monkeypatch):
    """Rounded to 8 bits: 2^-8 a feature and a value. Of many chunks, too."""
    use_chunks_of(chunk, monkeypatch)
    arrays = draw(2 * CHUNK, spread)
    found, _ = compute(*arrays, causal, "bfloat16")
    assert_near(found, oracle(*arrays, causal), 0.02)
    assert_gradients(arrays, causal, 0.05, dtype="bfloat16")
