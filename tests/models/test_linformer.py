"""Linformer: where it is softmax attention, and what its lengths are."""

import keras
import numpy as np
import pytest
from keras import ops

from models.transformer.attention import ProjectedAttention
from tests.models.builders import numpy, randomize
from tests.models.operator_checks import (
    assert_attends_as,
    assert_dynamic_lengths_serve,
    assert_mixed_precision_is_near,
)

BATCH, LENGTH, WIDTH, HEADS = 2, 9, 16, 2


def make(max_length=LENGTH, projected_length=5, **options):
    layer = ProjectedAttention(
        num_heads=HEADS,
        operator="linformer",
        max_length=max_length,
        projected_length=projected_length,
        **options,
    )
    layer.build((None, None, WIDTH))
    return layer


def text(length=LENGTH):
    x = np.random.default_rng(0).normal(size=(BATCH, length, WIDTH))
    return ops.convert_to_tensor(x.astype("float32"))


@pytest.mark.jax
def test_with_as_many_sums_as_keys_and_identities_it_is_softmax():
    softmax = ProjectedAttention(num_heads=HEADS)
    softmax.build((None, None, WIDTH))
    layer = make(projected_length=LENGTH)
    for projection in ("key_projection", "value_projection"):
        getattr(layer.operator, projection).assign(np.eye(LENGTH))
    layer.query_key_value.set_weights(softmax.query_key_value.get_weights())
    assert_attends_as(layer, softmax, text())


def test_a_shorter_text_takes_the_first_columns():
    longer, shorter = randomize(make(LENGTH)), make(LENGTH - 3)
    *projections, kernel = longer.get_weights()
    shorter.set_weights([*(x[:, : LENGTH - 3] for x in projections), kernel])
    x = text(LENGTH - 3)
    np.testing.assert_array_equal(
        numpy(longer(x, x).read(0, None)), numpy(shorter(x, x).read(0, None))
    )


def test_sums_of_keys_are_at_first_as_large_as_keys():
    for max_length in (100, 1000):
        operator = make(max_length, 50).operator
        random = np.random.default_rng(0)
        keys = random.normal(size=(1, 1, max_length, 64)).astype("float32")
        sums, _ = operator.prepare_keys(ops.convert_to_tensor(keys), 1)
        assert sums.shape == (1, 1, 50, 64)
        assert numpy(sums).std() == pytest.approx(1, abs=0.1)


def test_mixed_precision_gives_nearly_the_same():
    layer, mixed = randomize(make()), make(dtype="mixed_bfloat16")
    assert_mixed_precision_is_near(layer, mixed, text())


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="lengths are static elsewhere"
)
def test_a_length_may_be_known_only_when_it_runs():
    layer = randomize(make())
    assert_dynamic_lengths_serve(layer, [text(LENGTH), text(4)])
