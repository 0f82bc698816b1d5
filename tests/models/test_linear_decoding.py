"""Linear attention's states against the n x n matrix written out, in float64."""

import numpy as np
import pytest
from keras import ops

from models.attention.heads import merge_heads, split_heads
from tests.models.builders import at_once, numpy
from tests.models.linear_oracle import (
    BATCH,
    DEPTHS,
    FEATURES,
    HEADS,
    SIZE,
    assert_near,
    draw,
    given_features,
    masked,
    oracle,
    ordered,
)

pytestmark = pytest.mark.jax

LENGTH = 40


@pytest.fixture(params=["any order", "late keys large", "early keys large"])
def order(request):
    """A function of biases, which spread by 400 at least."""
    return {
        "any order": lambda biases: biases,
        "late keys large": ordered,
        "early keys large": lambda biases: ordered(biases, late=False),
    }[request.param]


def draw_wide(order, **options):
    """Of 30 % of the features, and of a query and keys without any."""
    queries, keys, biases, values = draw(LENGTH, 200, zeros=0.7, **options)
    queries[:, :, 5] = 0
    keys[0, :, 0] = keys[:, :, 7] = 0
    return queries, keys, order(biases), values


def test_steps_are_the_causal_sums_in_float64(order):
    queries, keys, biases, values = draw_wide(order)

    operator = given_features(use="causal")

    @at_once
    def step(queries, keys, biases, values, cache):
        state = operator.step((queries, keys), biases, cache, None)
        outputs = [
            split_heads(state.read(depth, merge_heads(values[depth])), HEADS)
            for depth in range(DEPTHS)
        ]
        return ops.stack(outputs), state.left()

    cache = operator.empty_cache(BATCH, 1, FEATURES, SIZE, DEPTHS, "float32")
    found = []
    for i in range(LENGTH):
        now = (x[..., i : i + 1, :] for x in (queries, keys, biases, values))
        outputs, cache = step(*now, cache)
        found.append(numpy(outputs))
    found = np.concatenate(found, axis=-2)
    assert (found[..., 5, :] == 0).all()
    assert_near(found, oracle(queries, keys, biases, values, True))


def test_a_source_is_read_as_the_sums_in_float64(order):
    """With padding, of one text with nothing else."""
    queries, keys, biases, values = draw_wide(order, padding=0.2, num_queries=11)
    biases[1] = -np.inf
    values[:] = values[0]  # those of every depth

    operator = given_features(use="cross")

    @at_once
    def attend(queries, keys, biases, values):
        cache = operator.source_cache(keys, biases, None, values)
        attended = operator.read_source(queries, cache)
        return ops.stack([split_heads(one, HEADS) for one in attended])

    found = numpy(attend(queries, keys, masked(biases), values[0]))
    assert (found[:, 1] == 0).all() and (found[..., 5, :] == 0).all()
    assert_near(found, oracle(queries, keys, biases, values, False))
