import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.top_k import top_k


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_values_and_tokens_of_a_sort(data):
    size = data.draw(st.integers(1, 400), "vocabulary")
    count = data.draw(st.integers(1, min(size, 20)), "count")
    seed = data.draw(st.integers(0, 2**32 - 1), "seed")
    logits = np.random.default_rng(seed).permutation(6 * size).reshape(2, 3, size)
    logits = logits.astype("float32")

    values, tokens = map(np.array, top_k(keras.ops.convert_to_tensor(logits), count))

    expected = np.argsort(-logits, axis=-1)[..., :count]
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, axis=-1))


@pytest.mark.parametrize("size", [32_000, 8_000, 30_522, 30_011])
def test_equal_values_give_different_tokens(size):
    values, tokens = top_k(keras.ops.zeros((1, 2, size)), 10)
    assert np.array_equal(np.array(values), np.zeros((1, 2, 10)))
    for row in np.array(tokens)[0]:
        assert len(set(row)) == 10
        assert row.min() >= 0
        assert row.max() < size
