"""Feature maps against their formulas, and FAVOR+ against the softmax."""

import keras
import numpy as np
import pytest
from keras import ops

from models.attention.feature_maps import (
    FEATURE_MAPS,
    NUM_DRAWS,
    draw_rotation,
    draw_vectors,
)
from models.transformer.attention import ProjectedAttention
from tests.models.builders import numpy
from tests.models.gradients import by_inputs

pytestmark = pytest.mark.jax

SIZE = 8


def normal(*shape, seed=0, norm=None):
    x = np.random.default_rng(seed).normal(size=shape)
    if norm is not None:
        x *= norm / np.linalg.norm(x, axis=-1, keepdims=True)
    return x.astype("float32")


def make(name, size=SIZE, seed=0, **changes):
    """A feature map as its first variant has it, with changes."""
    hyperparameters = next(iter(FEATURE_MAPS[name].variants.values()))
    return FEATURE_MAPS[name](size, seed, **{**hyperparameters, **changes})


EACH = pytest.mark.parametrize(
    "name, changes",
    [
        *((name, {}) for name in FEATURE_MAPS),
        ("dpfp", {"nu": 3}),
        ("favor", {"kernel": "relu"}),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value),
)


@EACH
def test_features_are_not_negative(name, changes):
    feature_map = make(name, **changes)
    x = 5 * normal(3, 11, SIZE)
    keys, logs = feature_map.keys(x)
    for features in (feature_map.queries(x), keys):
        features = numpy(features)
        assert features.shape == (3, 11, feature_map.num_features)
        assert (features >= 0).all()
    assert logs is None or logs.shape == (3, 11, 1)


@EACH
def test_gradients_are_those_of_differences(name, changes):
    """Of keys with their factors, and of queries, whose common factor cancels."""
    feature_map = make(name, **changes)
    x = normal(3, SIZE, seed=4)
    direction = normal(3, feature_map.num_features, seed=5)

    def of_keys(x):
        features, logs = feature_map.keys(x)
        factors = 1 if logs is None else ops.exp(logs)
        return ops.sum(ops.multiply(features * factors, direction))

    def of_queries(x):
        features = feature_map.queries(x)
        total = ops.sum(features, axis=-1, keepdims=True)
        return ops.sum(ops.multiply(features / total, direction))

    for scalar in (of_keys, of_queries):
        (found,), step = by_inputs(scalar, x), 1e-3
        found = numpy(found)
        expected = np.zeros_like(x)
        for place in np.ndindex(x.shape):
            ends = [x.copy(), x.copy()]
            ends[0][place] += step
            ends[1][place] -= step
            above, below = (float(numpy(scalar(end))) for end in ends)
            expected[place] = (above - below) / (ends[0][place] - ends[1][place])
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.01 * scale)


@pytest.mark.parametrize("name", ["elu1", "favor"])
@pytest.mark.parametrize("norm", [10, 100, 1000])
def test_what_is_as_unlike_as_can_be_still_counts(name, norm):
    """Where q = -k the product of their features is small, and not lost."""
    feature_map = make(name)
    keys = normal(20, SIZE, norm=norm)
    if name == "elu1":
        keys = -np.abs(keys)
    queries = -keys if name == "favor" else keys
    features = numpy(feature_map.queries(queries)), numpy(feature_map.keys(keys)[0])
    products = np.float32(features[0] * features[1]).sum(axis=-1)
    assert (products > 1e-37).all()


def test_relu_features_equal_the_formula():
    feature_map = make("favor", num_features=16, kernel="relu")
    x = normal(5, SIZE)
    expected = np.maximum(x @ feature_map.vectors[0].T / 16**0.5, 0) + 1e-3
    features, logs = feature_map.keys(x)
    assert logs is None and not feature_map.is_softmax
    for found in (features, feature_map.queries(x)):
        np.testing.assert_allclose(numpy(found), expected, rtol=1e-4, atol=1e-6)


def test_elu_equals_the_formula():
    x = normal(5, SIZE)
    found = numpy(make("elu1").queries(x))
    np.testing.assert_allclose(found, np.where(x > 0, x + 1, np.exp(x)), rtol=1e-5)


@pytest.mark.parametrize("nu", [1, 2, 3, 8])
def test_dpfp_equals_the_formula(nu):
    x = normal(5, SIZE)
    found = numpy(make("dpfp", nu=nu).queries(x))
    assert found.shape == (5, 2 * nu * SIZE)
    r = np.maximum(np.concatenate([x, -x], axis=-1), 0)
    for i in range(2 * SIZE):
        for shift in range(1, nu + 1):
            # Equation 37: r_i r_(i + shift), around the end; ours starts elsewhere.
            expected = r[:, i] * r[:, (i - shift) % (2 * SIZE)]
            place = (shift - 1) * 2 * SIZE + i
            np.testing.assert_allclose(found[:, place], expected, rtol=1e-6)
    assert (found == 0).mean() > 0.5
    assert (numpy(make("dpfp", nu=nu).queries(0 * x)) == 0).all()


def estimates(queries, keys, count, orthogonal, draws, paired=False):
    """exp(q . k) as FAVOR+ has it, of each draw: (draws, queries, keys)."""
    found = []
    for seed in range(draws):
        feature_map = make(
            "favor",
            queries.shape[-1],
            seed,
            num_features=count,
            orthogonal=orthogonal,
            paired=paired,
        )
        features, logs = map(numpy, feature_map.keys(keys))
        factors = np.exp(logs[:, 0].astype("float64"))
        # What is taken out of a query cancels in attention: here it is put back.
        projected = queries @ feature_map.vectors[0].T
        taken = projected.max(axis=-1) - (queries**2).sum(axis=-1) / 2
        products = numpy(feature_map.queries(queries)) @ features.T
        found.append(np.exp(taken)[:, None] * products * factors)
    return np.stack(found)


def test_favor_is_unbiased():
    queries, keys = normal(6, SIZE, norm=1.2), normal(7, SIZE, seed=1, norm=1.2)
    for fields in ((False, 100), (True, 100), (True, 100, True)):
        found = estimates(queries, keys, 64, *fields)
        error = found.std(axis=0) / 10
        expected = np.exp(queries @ keys.T)
        assert (np.abs(found.mean(axis=0) - expected) < 5 * error).all()


def test_pairs_come_nearer():
    """A relative error of 0.20, of 64 features in heads of 32, and 0.28 without."""
    queries, keys = normal(40, 32, norm=1), normal(40, 32, seed=1, norm=1)
    exact = np.exp(queries @ keys.T)
    errors = [
        np.sqrt(np.mean(np.square(estimates(*given) / exact - 1)))
        for given in ((queries, keys, 64, True, 30, x) for x in (True, False))
    ]
    assert errors == pytest.approx([0.20, 0.28], abs=0.02)


def test_draws_are_orthogonal_and_each_is_normal():
    vectors = draw_vectors(2 * SIZE + 3, SIZE, True, 0)
    assert vectors.shape == (2 * SIZE + 3, SIZE) and vectors.dtype == "float32"
    for start in (0, SIZE, 2 * SIZE):
        block = vectors[start : start + SIZE]
        products = block @ block.T
        off = products - np.diag(np.diag(products))
        assert np.abs(off).max() < 1e-4 * products.max()
    many = draw_vectors(4000, SIZE, True, 1)
    # Lengths and directions as of independent N(0, 1) numbers.
    assert np.mean(many**2) == pytest.approx(1, abs=0.03)
    assert np.mean(np.linalg.norm(many, axis=1) ** 4) == pytest.approx(
        SIZE * (SIZE + 2), rel=0.06
    )
    np.testing.assert_array_equal(vectors, draw_vectors(2 * SIZE + 3, SIZE, True, 0))
    assert (vectors != draw_vectors(2 * SIZE + 3, SIZE, True, 1)).any()


def test_redrawing_goes_through_the_draws_and_their_rotations():
    feature_map = make("favor", num_features=16, redraw_every=10)
    x = normal(4, SIZE)
    feature_map.build(keras.layers.Layer())
    features = []
    for draw in range(NUM_DRAWS**2 + 1):
        feature_map.passes.assign(10 * draw)
        features.append(numpy(feature_map.queries(x)).tobytes())
    assert len(set(features)) == NUM_DRAWS**2
    assert features[-1] == features[0]


def test_a_rotation_keeps_lengths_and_angles():
    rotation = draw_rotation(SIZE, 3)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(SIZE), atol=1e-6)
    assert (rotation != draw_rotation(SIZE, 4)).any()


def test_a_feature_map_that_is_not_there():
    with pytest.raises(ValueError, match="feature_map must be one of"):
        ProjectedAttention(num_heads=2, operator="linear", feature_map="other")
