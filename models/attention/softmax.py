"""Softmax attention: K = softmax(Q K^T)."""

from keras import ops

from models.attention.heads import (
    MASKED,
    is_future,
    num_earlier,
    sees_a_key,
    transpose,
    transposed_times,
)
from models.attention.operator import POSITIONS, DividedOperator
from models.attention.slot_decoding import SlotDecoding
from models.gradients import custom_gradient


class SoftmaxOperator(SlotDecoding, DividedOperator):
    """K = softmax(Q K^T) for scaled queries (equation 1), and the kin of it.

    A subclass lets a query see fewer keys, by the layout of queries and keys: `rows` of
    queries meet `columns` of keys. All else is the same, so K is one array of their
    products, and so is its gradient.
    """

    memory = POSITIONS
    rows_sum_to_one = True
    takes_relative_positions = True

    # The layout. Here all queries meet all keys.

    def rows(self, x, num_keys):
        """Queries (batch, heads, n, size) in rows, (…, rows, size)."""
        return x

    def joined_rows(self, x, num_queries, num_keys):
        """Inverse of `rows`."""
        return x

    def columns(self, x):
        """For each group of rows the keys that it meets, (…, columns, size)."""
        return x

    def joined_columns(self, x, num_keys):
        """Transposed `columns`: adds up what falls on a key."""
        return x

    def hidden(self, num_queries, num_keys):
        """Which columns a row must not see, bool (…, rows, columns); None if all may
        be seen."""
        return is_future(num_queries, num_keys) if self.causal else None

    def first_distance(self, num_queries, num_keys):
        """The position of a group's first column less that of its first row."""
        return -num_earlier(num_queries, num_keys) if self.causal else 0

    def sees(self, parts, mask, num_queries):
        """See `DividedOperator.sees`."""
        return sees_a_key(mask, num_queries, self.causal)

    # The operator.

    def prepare_keys(self, keys, scale, mask=None):
        """Padded keys are replaced by the first real one.

        Their weight is zero either way. But a padded key with a large score would push
        the real entries of its row of K towards underflow.
        """
        if mask is not None:
            first = ops.argmax(ops.cast(mask, "int32"), axis=1)[:, None, None, None]
            first_keys = ops.take_along_axis(keys, first, axis=2)
            keys = ops.where(
                mask[:, None, :, None], keys, ops.stop_gradient(first_keys)
            )
        return keys, None

    def inputs(self, queries, keys, further=()):
        """See `Operator.inputs`; the numbers of relative positions come last."""
        if self.relative is None:
            return super().inputs(queries, keys, further)
        inputs = super().inputs(self.relative.queries(queries), keys, further)
        return *inputs, self.relative.numbers(queries)

    def make(self, inputs, columns):
        """K and its inputs."""
        return self.kernel(inputs), *inputs

    def scores(self, queries, keys, *relative):
        """Of the inputs, Q K^T and what relative positions add, (…, rows, columns); and
        `hidden` of these."""
        num_queries, num_keys = _lengths(queries, keys)
        rows = self.rows(queries, num_keys)
        scores = ops.matmul(rows, transpose(self.columns(keys)))
        for numbers in relative:
            if not self.relative.is_shared:
                numbers = self.rows(numbers, num_keys)
            start = self.first_distance(num_queries, num_keys)
            scores = self.relative.add(scores, numbers, start)
        return scores, self.hidden(num_queries, num_keys)

    def kernel(self, inputs, biases=None):
        """The softmax of scores and biases b, (batch, heads or 1, m, 1), over the keys
        that are not hidden."""
        scores, hidden = self.scores(*inputs)
        if biases is None:
            return ops.softmax(hide(scores, hidden), axis=-1)
        biases = transpose(self.columns(ops.cast(biases, scores.dtype)))
        return ops.softmax(scores + hide(biases, hidden), axis=-1)

    def times(self, parts, x):
        kernel, queries, keys, *_ = parts
        product = ops.matmul(kernel, self.columns(x))
        return self.joined_rows(product, *_lengths(queries, keys))

    def transposed_times(self, parts, y):
        kernel, _, keys, *_ = parts
        num_keys = ops.shape(keys)[2]
        product = transposed_times(kernel, self.rows(y, num_keys))
        return self.joined_columns(product, num_keys)

    def gradient(self, parts, left, right):
        kernel, *inputs = parts
        left = self.rows(left, ops.shape(inputs[1])[2])
        d_kernel = ops.matmul(left, transpose(self.columns(right)))
        # A softmax's correction is left out: docs/attention.md.
        return self.by_scores(kernel * d_kernel, *inputs)

    def by_scores(self, d_scores, queries, keys, *relative):
        """The gradients of the inputs."""
        scores = d_scores, queries, keys
        gradients = self.times(scores, keys), self.transposed_times(scores, queries)
        if not relative:
            return gradients
        lengths = _lengths(queries, keys)
        by_numbers = self.relative.gradient(d_scores, self.first_distance(*lengths))
        if not self.relative.is_shared:
            by_numbers = self.joined_rows(by_numbers, *lengths)
        return *gradients, by_numbers

    def read_once(self, inputs, biases, values):
        """softmax(Q K^T + b) V; biases may be None. The kernel is kept."""
        return self._read(inputs, biases, values, keeps_kernel=True)

    def read_apart(self, inputs, biases, values):
        """softmax(Q K^T + b) V. The kernel is made again for the gradient, not kept."""
        return self._read(inputs, biases, values, keeps_kernel=False)

    def _read(self, inputs, biases, values, keeps_kernel):
        given = () if biases is None else (biases,)

        @custom_gradient
        def read(values, *arguments):
            inputs = arguments[len(given) :]

            def made():
                return self.kernel(inputs, *arguments[: len(given)]), *inputs

            parts = made()
            outputs = self.times(parts, values)

            def backward(d_outputs):
                kernel, *_ = again = parts if keeps_kernel else made()
                # With a softmax's own correction, as one more column of the product.
                slopes = -ops.sum(d_outputs * outputs, axis=-1, keepdims=True)
                left = ops.concatenate([d_outputs, slopes], axis=-1)
                left = self.rows(left, ops.shape(values)[2])
                right = ops.concatenate([values, ops.ones_like(values[..., :1])], -1)
                d_scores = kernel * ops.matmul(left, transpose(self.columns(right)))
                by_biases = [
                    self._by_biases(d_scores, inputs, d_outputs, one) for one in given
                ]
                return (
                    self.transposed_times(again, d_outputs),
                    *by_biases,
                    *self.by_scores(d_scores, *inputs),
                )

            return outputs, backward

        return read(values, *given, *inputs)

    def _by_biases(self, d_scores, inputs, d_outputs, biases):
        """The gradient of biases: sums of that of scores over queries."""
        ones = ops.ones_like(d_outputs[..., :1])
        slopes = self.transposed_times((d_scores, *inputs), ones)
        if biases.shape[1] == 1:
            slopes = ops.sum(slopes, axis=1, keepdims=True)
        return ops.cast(slopes, biases.dtype)

    def inputs_of_step(self, queries, keys, x, position):
        """See `Decoding.inputs_of_step`."""
        further = () if self.relative is None else (position,)
        return self.inputs(queries, keys, further)

    def step_scores(self, inputs, cache):
        queries, keys, *relative = inputs
        scores, keys = super().step_scores((queries, keys), cache)
        if relative:
            position, numbers = relative
            scores += self.relative.of_step(numbers, keys.distances(position))
        return scores, keys


def hide(scores, hidden):
    """Scores, low where `SoftmaxOperator.hidden` says so."""
    if hidden is None:
        return scores
    return scores + MASKED * ops.cast(hidden, scores.dtype)


def _lengths(queries, keys):
    return ops.shape(queries)[2], ops.shape(keys)[2]
