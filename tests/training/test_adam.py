"""The update in one operation against Keras'."""

import keras
import numpy as np

from training.adam import Adam
from training.schedule import WarmupSchedule

SHAPES = [(7, 3), (5,), ()]


def test_updates_and_moments_are_keras_own():
    """A padding row of an embedding, whose gradient is 0, among them."""
    random = np.random.default_rng(0)
    first = [random.normal(size=shape).astype("float32") for shape in SHAPES]
    steps = [[random.normal(size=s).astype("float32") for s in SHAPES] for _ in "abc"]
    for gradients in steps:
        gradients[0][0] = 0.0

    def trained(kind):
        weights = [keras.Variable(value) for value in first]
        schedule = WarmupSchedule(2.0, 16, 2)
        optimizer = kind(schedule, beta_1=0.9, beta_2=0.98, epsilon=1e-3, name="adam")
        optimizer.build(weights)
        for gradients in steps:
            optimizer.apply([keras.ops.array(g) for g in gradients], weights)
        return [v.numpy() for v in [*weights, *optimizer.variables]]

    expected, found = trained(keras.optimizers.Adam), trained(Adam)
    assert len(expected) == 1 + 3 * len(SHAPES)  # updates; weights and two moments
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[0][0], first[0][0])
