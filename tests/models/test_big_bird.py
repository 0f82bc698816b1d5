"""Big Bird: which blocks meet, and where it is softmax attention."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from common.errors import UserError
from models.attention.big_bird import BigBirdOperator
from tests.models.builders import at_once, numpy
from tests.models.test_operators import (
    BATCH,
    HEADS,
    KEY_SIZE,
    LENGTH,
    draw,
    make,
    padding,
    reads,
)

pytestmark = pytest.mark.jax

SMALL = BigBirdOperator.small


def attended(name, hyperparameters, mask):
    operator, layer = make(name, hyperparameters, "self")
    arrays = draw(layer)

    @at_once
    def read(*inputs):
        return reads(operator, layer, dict(zip(arrays, inputs, strict=True)), mask)

    return numpy(read(*arrays.values()))


@pytest.mark.parametrize(
    "blocks",
    [SMALL | {"random_blocks": 6}, SMALL | {"global_blocks": 9}, SMALL | {"block": 5}],
    ids=["all random", "all global", "few"],
)
def test_all_blocks_are_softmax(blocks):
    mask = padding()
    expected = attended("softmax", {}, mask)
    by_blocks = attended("big-bird", blocks, mask)
    np.testing.assert_allclose(by_blocks, expected, rtol=0, atol=1e-6)


def kernel(operator, mask):
    """K of equal scores, written out."""
    length = ops.shape(mask)[1]
    met = operator.further_inputs(mask, mask, mask)
    keys = ops.zeros((BATCH, HEADS, length, KEY_SIZE))
    columns = ops.eye(length) + keys[..., :1]
    parts = operator.make((keys, keys, *met), length)
    products = operator.times(parts, columns)
    return products / ops.max(products, axis=-1, keepdims=True)


def test_a_query_meets_as_many_keys_as_stated_and_each_once():
    operator, _ = make("big-bird", SMALL, "self")
    entries = numpy(kernel(operator, ops.ones((BATCH, LENGTH), "bool")))
    # The windows of the first and the last of these blocks have one block less.
    numbers = [14, 14, 8, 8, *[10] * 8, 8, 8]
    assert (np.sum(entries > 0, axis=-1) == numbers).all()
    np.testing.assert_array_equal(entries, entries > 0)


def test_padding_is_not_drawn():
    operator, _ = make("big-bird", SMALL, "self")
    length, real, block = 40, 12, SMALL["block"]
    mask = np.arange(length) < np.array([[real], [length]])
    (met,) = operator.further_inputs(mask, mask, mask)
    (alone,) = operator.further_inputs(mask[:1, :real], mask[:1, :real])
    # But for the last block, whose window ends with the text.
    count = real // block - SMALL["global_blocks"] - 1
    met, alone = (np.sort(numpy(x)[:, :, :count]) for x in (met, alone))
    none = length // block
    np.testing.assert_array_equal(
        met[0], np.where(alone[0] == real // block, none, alone[0])
    )
    assert (met[1] != met[0]).any()


def test_draws_are_each_heads_and_the_same_for_longer_texts():
    operator, _ = make("big-bird", SMALL, "self")
    again, _ = make("big-bird", SMALL, "self")
    few, many = operator.priorities(5), again.priorities(9)
    np.testing.assert_array_equal(many[:, :5, :5], few)
    assert len(np.unique(many)) == many.size


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="lengths are static elsewhere"
)
def test_a_length_may_be_unknown_below_the_longest():
    import tensorflow as tf

    operator, _ = make("big-bird", SMALL, "self", length=20)
    mask = padding()
    read = tf.function(
        lambda mask: kernel(operator, mask),
        input_signature=[tf.TensorSpec([BATCH, None], "bool")],
    )
    np.testing.assert_array_equal(read(mask), kernel(operator, mask))


def test_a_length_unknown_altogether_is_refused():
    operator, _ = make("big-bird", SMALL, "self", length=None)
    with pytest.raises(ValueError, match="max_length"):
        operator._priorities(ops.convert_to_tensor(5))


def test_blocks_that_are_too_many_are_refused():
    config = SimpleNamespace(data=SimpleNamespace(max_length=4_097))
    config.model = SimpleNamespace(attention=SimpleNamespace(block=5))
    BigBirdOperator.check(config)
    config.model.attention.block = 4
    with pytest.raises(UserError, match="attention.block: expected 5 or more"):
        BigBirdOperator.check(config)
