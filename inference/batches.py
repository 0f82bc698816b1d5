"""Rows of any lengths through a model, some at a time, within one graph."""

from collections.abc import Callable, Sequence

import tensorflow as tf

# Of the largest array that a batch makes: 128 MiB of float32.
MAX_NUMBERS = 2**25


def lengths_up_to(longest: int) -> list[int]:
    """8, 12, 16, 24, 32, 48, ..., and `longest`: rows between two share a batch."""
    lengths, step = [], 8
    while step < longest:
        lengths += [step, step * 3 // 2]
        step *= 2
    return [length for length in lengths if length < longest] + [longest]


def in_batches(
    function: Callable,
    lengths: tf.Tensor,
    specs: Sequence[tf.TensorSpec],
    longest: int,
    numbers: Callable[[int], int],
    max_rows: int,
) -> list[tf.Tensor]:
    """Applies a function to rows of about one length at a time.

    A long row shares its batch with no short one. A batch of long rows has fewer, so
    that its largest array has `MAX_NUMBERS` numbers at most, or those of a single row.

    Args:
      function: of the indices of some rows, int32 [some]; returns a tensor [some, ...]
        for each of `specs`.
      lengths: int32 [rows].
      specs: of the results; the first dimension, rows, is None.
      longest: of all lengths that there may be.
      numbers: function of a row's length: how many its largest array has.
      max_rows: of a batch.

    Returns:
      The results of all rows, in their order.
    """
    ladder = lengths_up_to(longest)
    capacity = [
        min(max(MAX_NUMBERS // numbers(length), 1), max_rows) for length in ladder
    ]
    total = tf.size(lengths)
    order = tf.argsort(lengths, stable=True)
    steps = tf.searchsorted(tf.constant(ladder), tf.gather(lengths, order))

    def batch(start, *results):
        step = steps[start]
        last = tf.searchsorted(steps, step[None], side="right")[0]
        end = tf.minimum(start + tf.gather(capacity, step), last)
        rows = order[start:end]
        found = function(rows)
        return end, *(
            tf.tensor_scatter_nd_update(result, rows[:, None], new)
            for result, new in zip(results, found, strict=True)
        )

    results = [
        tf.fill([total, *spec.shape[1:]], tf.zeros([], spec.dtype)) for spec in specs
    ]
    _, *results = tf.while_loop(
        lambda start, *results: start < total,
        batch,
        [0, *results],
        shape_invariants=[tf.TensorShape([]), *(spec.shape for spec in specs)],
        parallel_iterations=1,  # or the memory would be that of several
    )
    return results
