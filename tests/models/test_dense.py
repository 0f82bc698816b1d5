"""Dense layers in graphs whose shapes are not static."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from models.layers.dense import project, seeded_dense

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="graphs are TensorFlow's"
)
SHAPES = [(3, 5, 4), (None, 5, 4), (3, None, 4), (None, None, 4), (None, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_are_the_same_whichever_sizes_are_static(shape):
    random = np.random.default_rng(0)
    x = random.normal(size=[size or 3 for size in shape]).astype("float32")
    kernel = random.normal(size=(4, 6)).astype("float32")
    function = tf.function(lambda x: project(x, tf.constant(kernel)))
    function = function.get_concrete_function(tf.TensorSpec(shape, tf.float32))
    np.testing.assert_allclose(function(x), x @ kernel, rtol=1e-5, atol=1e-6)
    assert function.structured_outputs.shape.as_list() == [*shape[:-1], 6]
    shapes_in_graph = {"Shape", "Prod"} & {
        op.type for op in function.graph.get_operations()
    }
    assert bool(shapes_in_graph) == (shape.count(None) == 2)


def test_a_layer_survives_its_config():
    layer = seeded_dense(6, "dense", seed=1)
    copy = type(layer).from_config(layer.get_config())
    x = np.ones((2, 3, 4), "float32")
    np.testing.assert_array_equal(layer(x), copy(x))
