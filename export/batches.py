"""Rows of any lengths through a model, some at a time, within one graph."""

from collections.abc import Callable, Sequence

import tensorflow as tf

# Of the largest array that a batch makes: 128 MiB of float32.
MAX_NUMBERS = 2**25
# Rows up to so long share a batch with any shorter one.
SHORT = 8


def in_batches(
    function: Callable,
    lengths: tf.Tensor,
    specs: Sequence[tf.TensorSpec],
    numbers: Callable,
    max_rows: int,
) -> list[tf.Tensor]:
    """Applies a function to rows of about one length at a time, the longest first.

    A row shares its batch with none that has less than two thirds of its length. A
    batch of long rows has fewer, so that its largest array has `MAX_NUMBERS` numbers at
    most, or those of a single row.

    Args:
      function: of the indices of some rows, int32 [some]; returns a tensor [some, ...]
        for each of `specs`.
      lengths: int32 [rows].
      specs: of the results; the first dimension, rows, is None.
      numbers: function of a row's length, an int64 scalar from 1: how many its largest
        array has.
      max_rows: of a batch.

    Returns:
      The results of all rows, in their order.
    """
    total = tf.size(lengths)
    order = tf.argsort(lengths, stable=True)
    ordered = tf.gather(lengths, order)

    def batch(end, *results):
        longest = ordered[end - 1]
        fit = MAX_NUMBERS // numbers(tf.cast(tf.maximum(longest, 1), tf.int64))
        fit = tf.cast(tf.clip_by_value(fit, 1, max_rows), tf.int32)
        shortest = tf.where(longest > SHORT, 2 * longest // 3, 0)
        similar = tf.searchsorted(ordered, shortest[None])[0]
        start = tf.maximum(end - fit, similar)
        rows = order[start:end]
        found = function(rows)
        return start, *(
            tf.tensor_scatter_nd_update(result, rows[:, None], new)
            for result, new in zip(results, found, strict=True)
        )

    results = [
        tf.fill([total, *spec.shape[1:]], tf.zeros([], spec.dtype)) for spec in specs
    ]
    _, *results = tf.while_loop(
        lambda end, *results: end > 0,
        batch,
        [total, *results],
        shape_invariants=[tf.TensorShape([]), *(spec.shape for spec in specs)],
        parallel_iterations=1,  # or the memory would be that of several
    )
    return results
