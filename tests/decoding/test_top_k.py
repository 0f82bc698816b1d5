import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from decoding.top_k import top_k


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_equals_a_stable_sort(data):
    size = data.draw(st.integers(1, 400), "vocabulary")
    count = data.draw(st.integers(1, min(size, 20)), "count")
    different = data.draw(st.integers(1, 2 * size), "different values")
    seed = data.draw(st.integers(0, 2**32 - 1), "seed")
    generator = np.random.default_rng(seed)
    logits = generator.integers(0, different, (2, 3, size)).astype("float32")

    values, tokens = map(np.array, top_k(ops.convert_to_tensor(logits), count))

    expected = np.argsort(-logits, axis=-1, kind="stable")[..., :count]
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, axis=-1))
