"""What the signatures of an export share: inputs that are checked, rows in batches."""

from collections.abc import Callable, Sequence
from functools import wraps

import tensorflow as tf

TEXT = tf.TensorSpec([None], tf.string, name="text")
# Of the largest array that a batch makes: 128 MiB of float32.
MAX_NUMBERS = 2**25
# Rows up to so long share a batch with any shorter one.
SHORT = 8


def signature(*specs: tf.TensorSpec) -> Callable:
    """Makes a method of texts [batch] a `tf.function` that refuses other shapes.

    It does so by an `InvalidArgumentError`. TensorFlow does not hold a graph's inputs
    to the signature, and a scalar ends the process in some tokenizers.
    """

    def decorate(method):
        @wraps(method)
        def guarded(self, *columns):
            return method(self, *_checked(columns, specs))

        return tf.function(guarded, input_signature=specs, autograph=False)

    return decorate


def _checked(columns, specs):
    """The columns, which nothing reads before their shapes have been found right."""
    # TensorFlow takes the shapes of a signature for facts, and leaves out what checks
    # them. It knows none of these.
    columns = [
        tf.raw_ops.PlaceholderWithDefault(input=column, shape=tf.TensorShape(None))
        for column in columns
    ]
    shapes = [tf.shape(column) for column in columns]
    names = ", ".join(spec.name for spec in specs)
    expected = f"{names}: expected texts of shape [batch]"
    if len(columns) > 1:
        expected += ", as many of each"
    places = " and ".join(["{}"] * len(columns))
    message = tf.strings.format(f"{expected}, found shape {places}", shapes)
    first = shapes[0]
    right = [tf.size(first) == 1, *(tf.reduce_all(x == first) for x in shapes)]
    check = tf.raw_ops.Assert(condition=tf.reduce_all(right), data=[message])
    with tf.control_dependencies([check]):
        return [
            tf.ensure_shape(column, spec.shape)
            for column, spec in zip(columns, specs, strict=True)
        ]


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
        updates = function(rows)
        return start, *(
            tf.tensor_scatter_nd_update(result, rows[:, None], new)
            for result, new in zip(results, updates, strict=True)
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


def padded(rows: tf.RaggedTensor) -> tf.Tensor:
    """int32 [batch, length] with zeros at the end; at least one column."""
    dense = rows.to_tensor()
    missing = tf.maximum(1 - tf.shape(dense)[1], 0)
    return tf.pad(dense, [[0, 0], [0, missing]])
