"""The Reformer's sorting, chunks, rounds and hashes."""

import keras
import numpy as np
import pytest
from keras import ops

from models.attention import reading
from models.attention.heads import is_future, masked
from models.attention.reformer import ReformerOperator, bucket_counts
from models.attention.softmax import SoftmaxOperator
from tests.models import gradients
from tests.models.builders import at_once, numpy
from tests.models.dense import Drawn, masked_softmax
from tests.models.dense import reformer as dense
from tests.models.operator_checks import assert_equal_with_gradients

BATCH, HEADS, LENGTH, SIZE = 2, 2, 14, 6
USES = pytest.mark.parametrize("use", ["self", "causal"])


def make(use, length=LENGTH, rounds=2, chunk=4, **further):
    operator = ReformerOperator(HEADS, use, 0, rounds, chunk, **further)
    layer = keras.layers.Layer()
    layer.max_length = length
    operator.build(layer, SIZE)
    return operator


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def draw(length=LENGTH):
    """Queries, biases and values."""
    return (
        normal(BATCH, HEADS, length, SIZE),
        normal(BATCH, HEADS, length, 1, seed=1),
        normal(BATCH, length, HEADS * SIZE, seed=2),
    )


def attend(operator, queries, biases, values, mask=None):
    queries, biases, values = map(ops.convert_to_tensor, (queries, biases, values))
    real = np.ones((BATCH, queries.shape[2]), bool) if mask is None else mask
    real = ops.convert_to_tensor(real)
    inputs = operator.inputs(queries, None, (real,))
    mask = None if mask is None else real
    return read(operator, inputs, masked(biases, mask), values, mask)


def read(operator, inputs, biases, values, mask=None):
    length = ops.shape(values)[1]
    state = reading.start(operator, inputs, biases, mask, length, SIZE)
    return state.read(0, values)


class Shared(SoftmaxOperator):
    """Each query sees the other keys, and its own where there is none."""

    def hidden(self, num_queries, num_keys):
        hidden = ops.eye(num_keys, dtype="bool")
        if not self.causal:
            return hidden
        alone = np.arange(num_keys) == 0
        alone = ops.convert_to_tensor(~(alone[:, None] & alone))
        hidden = ops.logical_and(hidden, alone)
        return ops.logical_or(hidden, is_future(num_queries, num_keys))


@pytest.mark.jax
@USES
@pytest.mark.parametrize("chunk", [LENGTH, 64])
def test_a_chunk_that_covers_the_text_is_a_softmax_and_so_are_its_gradients(use, chunk):
    operator, softmax = make(use, chunk=chunk), Shared(HEADS, use, 0)

    def by_chunks(*arrays):
        return attend(operator, *arrays)

    def by_softmax(queries, biases, values):
        keys = queries / ops.norm(queries, axis=-1, keepdims=True)
        return read(softmax, (queries, keys), biases, values)

    assert_equal_with_gradients(by_chunks, by_softmax, *draw())


@USES
def test_rounds_with_equal_hashes_change_nothing(use):
    operator, once = make(use, rounds=3), make(use, rounds=1)
    once.rotations = [rotations[:, :1] for rotations in operator.rotations]
    operator.rotations = [np.repeat(x, 3, axis=1) for x in once.rotations]
    arrays = draw()
    expected = numpy(attend(once, *arrays))
    attended = numpy(attend(operator, *arrays))
    np.testing.assert_allclose(attended, expected, rtol=0, atol=2e-6)


@USES
def test_a_round_adds_keys(use):
    arrays = draw()
    few, many = (numpy(attend(make(use, rounds=n), *arrays)) for n in (1, 2))
    assert np.abs(few - many).max() > 0.1


def test_tokens_that_come_later_move_no_earlier_one_out_of_reach():
    operator = make("causal", length=48)
    arrays = draw(48)
    expected = numpy(attend(operator, *arrays))
    for start in (17, 30, 47):
        queries, biases, values = (x.copy() for x in arrays)
        queries[:, :, start:] = normal(BATCH, HEADS, 48 - start, SIZE, seed=3)
        values[:, start:] += 1
        attended = numpy(attend(operator, queries, biases, values))
        np.testing.assert_allclose(
            attended[:, :start], expected[:, :start], rtol=0, atol=2e-6
        )


@USES
@pytest.mark.parametrize("start", [0, 5, 14])
def test_padding_anywhere_changes_nothing(use, start):
    operator = make(use)
    arrays, mask = draw(), np.ones((BATCH, LENGTH + 7), bool)
    mask[:, start : start + 7] = False
    expected = numpy(attend(operator, *arrays))
    places = [start] * 7
    queries, biases = (
        np.insert(x, places, normal(7, 1, seed=5), axis=2) for x in arrays[:2]
    )
    values = np.insert(arrays[2], places, 9, axis=1)
    attended = numpy(attend(operator, queries, biases, values, mask))
    np.testing.assert_allclose(attended[:, mask[0]], expected, rtol=0, atol=2e-6)
    assert not attended[:, ~mask[0]].any()


@USES
def test_a_bucket_larger_than_two_chunks_is_seen_in_part(use):
    # Queries of one direction have one bucket, and all their keys the same score.
    queries, _, values = draw()
    lengths = np.exp(normal(BATCH, HEADS, LENGTH, 1, seed=3))
    queries = queries[:, :, :1] * lengths
    biases = np.zeros_like(lengths)
    attended = numpy(attend(make(use), queries, biases, values))
    for i in range(LENGTH):
        first, end = max(0, i // 4 - 1) * 4, min(LENGTH, (i // 4 + 1) * 4)
        if use == "causal":
            first, end = max(0, i - 4), i
        keys = [j for j in range(first, end) if j != i] or [i]
        expected = values[:, keys].mean(axis=1)
        np.testing.assert_allclose(attended[:, i], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("use", ["self", pytest.param("causal", marks=pytest.mark.jax)])
def test_reads_apart_are_those_of_the_parts(use, monkeypatch):
    operator, mask = make(use), np.ones((BATCH, LENGTH), bool)
    mask[1, 9:] = False
    arrays = draw()
    direction = ops.convert_to_tensor(normal(BATCH, LENGTH, HEADS * SIZE, seed=4))

    def results():
        def scalar(queries, biases, values):
            attended = attend(operator, queries, biases, values, mask)
            return ops.sum(attended * direction)

        def outputs(*arrays):
            return attend(operator, *arrays, mask)

        slopes = gradients.by_inputs(at_once(scalar), *arrays)
        return [at_once(outputs)(*arrays), *slopes]

    expected = results()
    monkeypatch.setattr(reading, "SMALL", np.inf)
    for array, by_parts in zip(results(), expected, strict=True):
        scale = max(1, np.abs(numpy(by_parts)).max())
        np.testing.assert_allclose(
            numpy(array), numpy(by_parts), rtol=0, atol=1e-5 * scale
        )


@USES
def test_biases_far_apart_are_read_as_defined(use):
    operator, (queries, biases, values) = make(use), draw()
    biases *= 200
    attended = numpy(attend(operator, queries, biases, values))
    mask, settings = np.ones((BATCH, LENGTH), bool), {"rounds": 2, "chunk": 4}
    exact = queries.astype("float64")
    drawn = Drawn(
        exact, exact, None, mask, 1.0, operator.causal, {}, settings, operator
    )
    kernel = dense.kernel(drawn)
    # e^-600 is no float32: the parts would leave most rows nothing.
    logs = np.log(np.where(kernel, kernel, 1)) + biases.swapaxes(2, 3)
    weights = masked_softmax(logs, kernel > 0)
    by_head = values.reshape(BATCH, LENGTH, HEADS, SIZE)
    expected = np.einsum("bhqk,bkhs->bqhs", weights, by_head).reshape(values.shape)
    np.testing.assert_allclose(attended, expected, rtol=0, atol=1e-4)


def test_it_needs_the_greatest_length():
    with pytest.raises(ValueError, match="max_length"):
        make("self", length=None)


@pytest.mark.parametrize("length", [65, 100, 1000, 4000, 16_000])
def test_buckets_of_average_size_fill_half_a_chunk(length):
    counts = bucket_counts(length, 64)
    assert all(count % 2 == 0 for count in counts)
    # Few buckets are no finer than the even numbers.
    error = 1 if length < 1000 else 0.2
    assert abs(np.prod(counts) / (length / 32) - 1) <= error
    # What a token costs to hash, which grows as the root of the length.
    assert sum(counts) <= 2 * (length / 32) ** 0.5 + 4


@pytest.mark.parametrize(
    "buckets, factors", [(2, (2,)), (24, (4, 6)), (64, (8, 8)), (66, (66,))]
)
def test_buckets_may_be_given(buckets, factors):
    operator = make("self", length=None, buckets=buckets)
    assert operator.bucket_counts == factors
    assert [x.shape for x in operator.rotations] == [
        (SIZE, 2, factor // 2) for factor in factors
    ]
    queries, biases, values = draw()
    real = np.ones((BATCH, LENGTH), bool)
    settings = {"rounds": 2, "chunk": 4}
    exact = queries.astype("float64")
    drawn = Drawn(exact, exact, None, real, 1.0, False, {}, settings, operator)
    weights = dense.kernel(drawn) * np.exp(biases.swapaxes(2, 3))
    weights /= weights.sum(axis=-1, keepdims=True)
    by_head = values.reshape(BATCH, LENGTH, HEADS, SIZE)
    expected = np.einsum("bhqk,bkhs->bqhs", weights, by_head).reshape(values.shape)
    attended = numpy(attend(operator, queries, biases, values))
    np.testing.assert_allclose(attended, expected, rtol=0, atol=2e-6)


def test_buckets_of_a_long_text_are_counted_in_int32():
    length = 1_000_000
    assert (np.prod(bucket_counts(length, 64)) + 1) * length < 2**31


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="others have static shapes"
)
def test_lengths_may_be_known_late():
    import tensorflow as tf

    operator = make("self")

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, HEADS, None, SIZE)),
            tf.TensorSpec((None, HEADS, None, 1)),
            tf.TensorSpec((None, None, HEADS * SIZE)),
        ],
        autograph=False,
    )
    def call(queries, biases, values):
        real = tf.ones(tf.shape(values)[:2], "bool")
        inputs = operator.inputs(queries, None, (real,))
        return read(operator, inputs, biases, values)

    for length in (3, LENGTH):
        arrays = draw(length)
        expected = numpy(attend(operator, *arrays))
        np.testing.assert_allclose(numpy(call(*arrays)), expected, rtol=0, atol=2e-6)
