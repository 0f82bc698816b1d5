"""Diagonal state spaces: kernels as sums, and convolutions as recurrences."""

import keras
import numpy as np
import pytest
from keras import ops

from models.attention import reading
from models.attention.state_space import STEPS, StateSpaceOperator
from models.transformer.attention import ProjectedAttention
from tests.models.builders import at_once, numpy

pytestmark = pytest.mark.jax

HEADS, SIZE, STATES, LENGTH = 2, 3, 5, 150  # several chunks of powers


def make(use="causal", size=SIZE):
    """An operator as it is initialised."""
    operator = StateSpaceOperator(HEADS, use, 0, STATES)
    layer = keras.layers.Layer()
    layer.hidden_dim = HEADS * size
    operator.build(layer, size)
    return operator


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def kernels(operator, length=LENGTH):
    return list(map(numpy, at_once(lambda: operator.kernels(length))()))


def test_kernels_equal_the_sum_written_out():
    operator = make("self")
    times, step = np.arange(LENGTH), np.exp(numpy(operator.log_step))[:, None]
    pole = -0.5 + 1j * np.pi * np.arange(STATES)  # S4D-Lin
    entry = (np.exp(step * pole) - 1) / pole
    for kernel, output in zip(kernels(operator), operator.outputs, strict=True):
        weights = numpy(output) @ [1, 1j] * entry
        expected = 2 * np.real(
            np.einsum(
                "cn,cnt->ct", weights, np.exp(step[..., None] * pole[:, None] * times)
            )
        )
        if output is operator.outputs[0]:
            expected[:, 0] += numpy(operator.skip)
        kernel = kernel.reshape(HEADS * SIZE, LENGTH)
        np.testing.assert_allclose(kernel, expected, rtol=0, atol=1e-6)


def test_steps_start_with_a_uniform_logarithm():
    logs = numpy(make(size=512).log_step)
    low, high = np.log(STEPS)
    shares, _ = np.histogram(logs, bins=4, range=(low, high))
    assert sum(shares) == len(logs)
    assert np.abs(shares / len(logs) - 0.25).max() < 0.05


def test_kernels_of_self_attention_act_both_ways():
    operator = make("self")
    forward, backward = kernels(operator)
    values = normal(1, HEADS, LENGTH, SIZE)

    @at_once
    def read(values):
        x = ops.zeros((1, LENGTH, HEADS * SIZE))
        parts = operator.make(operator.further_inputs(x, x), SIZE)
        return operator.times(parts, values)

    outputs = numpy(read(values))
    for head, channel in np.ndindex(HEADS, SIZE):
        row = values[0, head, :, channel].astype("float64")
        expected = np.convolve(row, forward[head, channel])[:LENGTH]
        expected += np.convolve(row[::-1], backward[head, channel])[:LENGTH][::-1]
        np.testing.assert_allclose(outputs[0, head, :, channel], expected, atol=1e-5)


in_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="uses TensorFlow's graphs"
)


@in_tensorflow
def test_convolution_equals_recurrence_over_2000_steps():
    import tensorflow as tf

    operator, length = make(size=8), 2000
    values = normal(1, length, HEADS * 8)

    @tf.function(jit_compile=True)
    def recurrently(values):
        state = operator.step((), None, operator.empty_cache(1, 1, 8, 8, 1, None), None)
        outputs = tf.TensorArray("float32", length)
        past = state.cache
        for position in tf.range(length):
            now = state._replace(cache=[*past])
            attended = now.read(0, values[:, position, None])
            outputs, past = outputs.write(position, attended[0, 0]), now.left()
        return outputs.stack()

    kernel = kernels(operator, length)[0].reshape(HEADS * 8, length).astype("float64")
    expected = [
        np.convolve(row, column)[:length]
        for row, column in zip(values[0].T, kernel, strict=True)
    ]
    x = ops.convert_to_tensor(values)
    parts = operator.make(operator.further_inputs(x, x), 8)
    by_head = values[0].reshape(1, length, HEADS, 8).swapaxes(1, 2)
    convolved = numpy(operator.times(parts, by_head))[0].swapaxes(0, 1)
    convolved = convolved.reshape(length, HEADS * 8)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(convolved, np.transpose(expected), atol=1e-5 * scale)
    stepped = numpy(recurrently(values))
    np.testing.assert_allclose(stepped, convolved, rtol=0, atol=1e-4 * scale)


@in_tensorflow
def test_lengths_may_be_unknown_before_it_runs():
    import tensorflow as tf

    operator, x = make(), tf.constant(normal(2, LENGTH, HEADS * SIZE))

    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            biases = ops.repeat(ops.zeros_like(x[:, None, :, :1]), HEADS, axis=1)
            inputs, length = operator.further_inputs(x, x), ops.shape(x)[1]
            state = reading.start(operator, inputs, biases, None, length, SIZE)
            loss = ops.sum(ops.square(state.read(0, x)))
        return tape.gradient(loss, [x, operator.log_step.value])

    of_any_length = tf.function(slopes, autograph=False).get_concrete_function(
        tf.TensorSpec([None, None, HEADS * SIZE])
    )
    for unknown, known in zip(of_any_length(x), slopes(x), strict=True):
        scale = np.abs(numpy(known)).max()
        np.testing.assert_allclose(numpy(unknown), numpy(known), atol=1e-5 * scale)


def test_queries_after_earlier_keys_are_the_last_of_as_many():
    operator = make()
    num_queries, columns = 40, 2 * SIZE
    kernel = kernels(operator)[0]
    left = normal(2, HEADS, num_queries, columns)
    before = np.zeros((2, HEADS, LENGTH - num_queries, columns), "float32")
    right = normal(2, HEADS, LENGTH, columns, seed=1)

    @at_once
    def results(sees, left):
        parts = operator.make((kernel, sees), columns)
        outputs = operator.times(parts, right)[:, :, -num_queries:]
        slope, _ = operator.gradient(parts, left, right)
        return outputs, operator.transposed_times(parts, left), slope

    some = results(np.ones((1, 1, num_queries, 1), "float32"), left)
    whole = np.ones((1, 1, LENGTH, 1), "float32")
    for one, other in zip(
        some, results(whole, np.concatenate([before, left], axis=2)), strict=True
    ):
        np.testing.assert_allclose(numpy(one), numpy(other), rtol=0, atol=1e-4)


def test_weights_stay_float32_where_a_model_computes_in_bfloat16():
    """A kernel's phases at a distance are lost in bfloat16's digits."""
    x = normal(1, LENGTH, HEADS * SIZE)
    outputs = []
    for dtype in ("float32", "mixed_bfloat16"):
        layer = ProjectedAttention(
            num_heads=HEADS,
            operator="state-space",
            use="causal",
            dtype=dtype,
            states=16,
        )
        layer.build(x.shape)
        attended = layer(x, x).read(0, None)
        assert keras.backend.standardize_dtype(attended.dtype) == layer.compute_dtype
        outputs.append(numpy(ops.cast(attended, "float32")))
    precise, rounded = outputs
    assert np.abs(rounded - precise).max() < 0.02 * np.abs(precise).max()
