"""What tests of several operators ask of a Transformer's layer."""

import keras
import numpy as np
from keras import ops

from tests.models import gradients
from tests.models.builders import at_once, numpy


def assert_mixed_precision_is_near(layer, mixed, x):
    """That a layer in bfloat16 with the weights of another attends nearly alike."""
    mixed.set_weights(layer.get_weights())
    attended = mixed(x, x).read(0, None)
    assert keras.backend.standardize_dtype(attended.dtype) == "bfloat16"
    np.testing.assert_allclose(
        numpy(ops.cast(attended, "float32")),
        numpy(layer(x, x).read(0, None)),
        rtol=0,
        atol=0.06,
    )


def assert_dynamic_lengths_serve(layer, texts):
    """That a length which is known only when it runs gives what a static one does."""
    import tensorflow as tf

    width = texts[0].shape[-1]
    call = tf.function(
        lambda x: layer(x, x).read(0, None),
        input_signature=[tf.TensorSpec((None, None, width))],
    )
    for x in texts:
        np.testing.assert_allclose(
            call(x), layer(x, x).read(0, None), rtol=0, atol=1e-6
        )


def assert_attends_as(layer, expected, x, mask=None):
    """That a layer gives what another does, and its input the same gradient."""

    def attended(layer):
        return lambda x: layer(x, x, mask).read(0, None)

    assert_equal_with_gradients(attended(layer), attended(expected), numpy(x))


def assert_equal_with_gradients(call, expected, *arrays):
    """That a function of arrays gives what another does, and so do its gradients."""

    def results(call):
        def squares(*inputs):
            return ops.sum(ops.square(call(*inputs)))

        def outputs_and_slopes(*inputs):
            return call(*inputs), *gradients.by_inputs(squares, *inputs)

        return [numpy(x) for x in at_once(outputs_and_slopes)(*arrays)]

    (outputs, *slopes), (right_outputs, *right_slopes) = map(results, (call, expected))
    np.testing.assert_allclose(outputs, right_outputs, rtol=0, atol=2e-6)
    for slope, right in zip(slopes, right_slopes, strict=True):
        least = 1e-5 * max(1, np.abs(right).max())
        np.testing.assert_allclose(slope, right, rtol=0, atol=least)
