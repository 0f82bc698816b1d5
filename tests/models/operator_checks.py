"""What tests of several operators ask of a Transformer's layer."""

import keras
import numpy as np
from keras import ops

from tests.models import gradients
from tests.models.builders import numpy


def assert_mixed_precision_is_near(layer, mixed, x):
    """That a layer in bfloat16 with the weights of another attends nearly alike."""
    mixed.set_weights(layer.get_weights())
    attended = mixed(x, x).attended
    assert keras.backend.standardize_dtype(attended.dtype) == "bfloat16"
    np.testing.assert_allclose(
        numpy(ops.cast(attended, "float32")),
        numpy(layer(x, x).attended),
        rtol=0,
        atol=0.05,
    )


def assert_dynamic_lengths_serve(layer, texts):
    """That a length which is known only when it runs gives what a static one does."""
    import tensorflow as tf

    width = texts[0].shape[-1]
    call = tf.function(
        lambda x: layer(x, x).attended,
        input_signature=[tf.TensorSpec((None, None, width))],
    )
    for x in texts:
        np.testing.assert_allclose(call(x), layer(x, x).attended, rtol=0, atol=1e-6)


def assert_attends_as(layer, expected, x, mask=None):
    """That a layer gives what another does, and its input the same gradient."""

    def squares(layer):
        return lambda x: ops.sum(ops.square(layer(x, x, mask).attended))

    both = layer, expected
    outputs = [numpy(each(x, x, mask).attended) for each in both]
    np.testing.assert_allclose(*outputs, rtol=0, atol=1e-6)
    slopes = [numpy(gradients.by_inputs(squares(each), numpy(x))[0]) for each in both]
    np.testing.assert_allclose(*slopes, rtol=0, atol=1e-5)
