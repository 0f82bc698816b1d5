"""Rows in batches within a graph."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from export.signatures import MAX_NUMBERS, SHORT, in_batches

LONGEST, MAX_ROWS = 4000, 8


@tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
def batched(lengths):
    """Of each row: its index, the size of its batch, the longest there, its length."""

    def function(rows):
        members = tf.gather(lengths, rows)
        same = tf.ones_like(rows)
        return (
            rows,
            same * tf.size(rows),
            same * tf.reduce_max(members),
            tf.strings.as_string(members),
        )

    return in_batches(
        function,
        lengths,
        [tf.TensorSpec([None], dtype) for dtype in (*[tf.int32] * 3, tf.string)],
        lambda length: 8 * length**2,
        MAX_ROWS,
    )


@given(st.lists(st.integers(0, LONGEST), max_size=40))
def test_every_row_is_in_one_batch_of_about_its_length(lengths):
    lengths = np.array(lengths, "int32")
    rows, sizes, longest, names = (x.numpy() for x in batched(lengths))
    np.testing.assert_array_equal(rows, np.arange(len(lengths)))
    assert [int(name) for name in names] == lengths.tolist()
    assert (sizes <= MAX_ROWS).all()
    assert (longest <= np.maximum((lengths * 3 + 2) // 2, SHORT)).all()
    numbers = sizes * 8 * longest.astype("int64") ** 2
    assert ((numbers <= MAX_NUMBERS) | (sizes == 1)).all()
