"""The update in one operation against Keras'."""

import itertools

import keras
import numpy as np
from ml_collections import ConfigDict

from models import FIELDS as MODEL_FIELDS
from training.config import FIELDS
from training.schedule import WarmupSchedule
from training.tensorflow.optimizer import Adam

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


# The least and the most that their fields accept.
LARGEST_WIDTH = 65_536
ACCEPTED = {
    "learning_rate_max": (1e-10, 1e10),
    "warmup_steps": (1, 10_000_000),
    "adam_beta_1": (0.0, 0.999999),
    "adam_beta_2": (0.0, 0.999999),
    "adam_epsilon": (1e-16, 1.0),
    "clip_norm": (1e-6, 1e10),
}


def test_these_are_the_bounds_of_the_fields():
    assert MODEL_FIELDS["hidden_dim"].accepts(LARGEST_WIDTH)
    assert not MODEL_FIELDS["hidden_dim"].accepts(LARGEST_WIDTH + 1)
    for name, (least, most) in ACCEPTED.items():
        accepts = FIELDS[f"train.{name}"].accepts
        assert accepts(least) and accepts(most), name
        assert not accepts(least / 2 - 1e-9) and not accepts(1.0001 * most + 1e-6), name


def updated(settings):
    """A weight of 0 after three updates by a gradient that is cut to `clip_norm`."""
    # The largest of a billion weights that share the gradient alike.
    gradient = np.float32(min(1e-3, settings.clip_norm * 3e-5))
    weight = keras.Variable(np.zeros(2, "float32"))
    schedule = WarmupSchedule(
        settings.learning_rate_max, LARGEST_WIDTH, settings.warmup_steps
    )
    optimizer = Adam(
        schedule,
        beta_1=settings.adam_beta_1,
        beta_2=settings.adam_beta_2,
        epsilon=settings.adam_epsilon,
    )
    optimizer.build([weight])
    for _ in range(3):
        optimizer.apply([keras.ops.array([gradient, 0.0])], [weight])
    return weight.numpy()


def test_what_fields_accept_trains_all_together():
    for values in itertools.product(*ACCEPTED.values()):
        settings = ConfigDict(dict(zip(ACCEPTED, values, strict=True)))
        trained, untouched = updated(settings)
        assert trained < 0 and np.isfinite(trained), settings
        assert untouched == 0, settings
