"""Feature maps against their formulas, and FAVOR+ against the softmax."""

import numpy as np
import pytest

from models.attention.feature_maps import (
    FEATURE_MAPS,
    NUM_DRAWS,
    VARIANTS,
    draw_vectors,
)
from models.attention.linear import LinearAttention
from tests.models.builders import numpy

pytestmark = pytest.mark.jax

SIZE = 8


def normal(*shape, seed=0, norm=None):
    x = np.random.default_rng(seed).normal(size=shape)
    if norm is not None:
        x *= norm / np.linalg.norm(x, axis=-1, keepdims=True)
    return x.astype("float32")


def make(name, size=SIZE, seed=0, **changes):
    """A feature map as its variant has it, with changes."""
    variants = [x for x in VARIANTS.values() if x["feature_map"] == name]
    hyperparameters = {**variants[0], **changes}
    return FEATURE_MAPS[hyperparameters.pop("feature_map")](
        size, seed, **hyperparameters
    )


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_features_are_not_negative(name):
    feature_map = make(name)
    x = 5 * normal(3, 11, SIZE)
    keys, logs = feature_map.keys(x)
    for features in (feature_map.queries(x), keys):
        features = numpy(features)
        assert features.shape == (3, 11, feature_map.num_features)
        assert (features >= 0).all()
    assert logs is None or logs.shape == (3, 11, 1)


def test_elu():
    x = normal(5, SIZE)
    found = numpy(make("elu1").queries(x))
    np.testing.assert_allclose(found, np.where(x > 0, x + 1, np.exp(x)), rtol=1e-5)


@pytest.mark.parametrize("nu", [1, 2, 3])
def test_dpfp(nu):
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


def estimates(queries, keys, count, orthogonal, draws):
    """exp(q . k) as FAVOR+ has it, of each draw: (draws, queries, keys)."""
    found = []
    for seed in range(draws):
        feature_map = make(
            "favor",
            queries.shape[-1],
            seed,
            num_features=count,
            orthogonal=orthogonal,
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
    for orthogonal in (False, True):
        found = estimates(queries, keys, 64, orthogonal, 100)
        error = found.std(axis=0) / 10
        expected = np.exp(queries @ keys.T)
        assert (np.abs(found.mean(axis=0) - expected) < 5 * error).all()


def test_draws():
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


def test_redrawing_goes_through_the_draws():
    feature_map = make("favor", num_features=16, redraw_every=10)
    x = normal(4, SIZE)
    found = [numpy(feature_map.queries(x, draw)) for draw in range(NUM_DRAWS + 1)]
    for i in range(NUM_DRAWS):
        assert (found[i] != found[i + 1]).any()
    np.testing.assert_array_equal(found[0], found[NUM_DRAWS])


def test_a_feature_map_that_is_not_there():
    with pytest.raises(ValueError, match="feature_map must be one of"):
        LinearAttention(num_heads=2, feature_map="other")
