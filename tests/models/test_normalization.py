"""The layer normalisation against Keras's, whose gradient is automatic."""

import keras
import numpy as np
import pytest

from models.layers.normalization import LayerNormalization
from tests.models.gradients import with_gradients

pytestmark = pytest.mark.jax
SHAPES = [(3, 5, 8), (4, 8)]


class Model(keras.Model):
    """A weight of the input's shape, and a normalisation of it."""

    def __init__(self, normalization, x):
        super().__init__()
        self.normalization = normalization
        self.x = self.add_weight(shape=x.shape, name="x", dtype="float32")
        normalization.build(x.shape)
        self.x.assign(x)
        random = np.random.default_rng(1)
        for weight in normalization.trainable_weights:
            weight.assign(random.normal(size=weight.shape))
        self.built = True

    def call(self, anything):
        return self.normalization(self.x)


def outputs_and_gradients(normalization, x):
    slopes = np.random.default_rng(2).normal(size=x.shape).astype("float32")

    def function(call):
        outputs = keras.ops.cast(call(slopes), "float32")
        return keras.ops.sum(keras.ops.multiply(outputs, slopes)), outputs

    (_, outputs), gradients = with_gradients(Model(normalization, x), function)
    return keras.ops.convert_to_numpy(outputs), gradients


@pytest.mark.parametrize("scale, shift", [(1, 0), (1e-4, 0), (1e4, 0), (1, 1e3)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_outputs_and_gradients_are_keras_s(shape, scale, shift):
    x = np.random.default_rng(0).normal(size=shape) * scale + shift
    x = x.astype("float32")
    ours, theirs = (
        outputs_and_gradients(make(dtype="float32", name="norm"), x)
        for make in (LayerNormalization, keras.layers.LayerNormalization)
    )
    # Keras takes the mean times 1 / deviation from the same product of x.
    tolerance = 1e-5 * max(1, shift)
    np.testing.assert_allclose(ours[0], theirs[0], atol=tolerance)
    assert ours[1].keys() == theirs[1].keys()
    for name, slope in ours[1].items():
        size = np.abs(theirs[1][name]).max()
        np.testing.assert_allclose(slope, theirs[1][name], atol=tolerance * size)


def test_half_precision_is_computed_in_float32():
    x = np.random.default_rng(0).normal(size=SHAPES[0]) + 100
    ours, theirs = (
        outputs_and_gradients(make(dtype="mixed_bfloat16", name="norm"), x)
        for make in (LayerNormalization, keras.layers.LayerNormalization)
    )
    np.testing.assert_allclose(ours[0], theirs[0], atol=0.02)


def test_it_survives_its_config():
    layer = LayerNormalization(epsilon=0.1, name="norm")
    assert LayerNormalization.from_config(layer.get_config()).epsilon == 0.1
