"""Linformer: a softmax over a few sums of keys, in time linear in the length."""

import keras
from keras import ops

from common.fields import integer
from models.attention.heads import transpose, transposed_times
from models.attention.operator import Operator
from models.seeds import derive_seed


class LinformerOperator(Operator):
    """K = softmax(Q (G K)^T) F for scaled queries (Wang et al. 2020, equation 7).

    G and F, the paper's E and F, are learned and of k rows. A query sees k sums of all
    keys, G K, and takes their values from k sums of all values. The heads of a layer
    share G and F (the paper's "headwise sharing"). A text of m positions takes their
    first m columns, and its padded keys count as zeros. Entries of F may be negative,
    so what is read is not divided.

    At first the entries have the variance 1 / max_length: the sums of keys are then
    about as large as keys, and scores as a softmax's. By the paper's theorem 2 it would
    be 1/k, with which scores grow with the length.

    Args:
      projected_length: k.
    """

    uses = ("self",)
    fields = {
        "projected_length": integer(
            "k, sums of keys that a query of Linformer sees.", maximum=65_536
        )
    }
    variants = {"": {"projected_length": 256}}
    small = {"projected_length": 5}
    padding = "end"
    linear_time = True
    is_ordered = True
    has_weights_by_position = True

    def __init__(self, num_heads, use, seed, projected_length):
        super().__init__(num_heads, use, seed)
        self.projected_length = projected_length

    def build(self, layer, size):
        """G and F, (k, max_length) each."""

        def projection(name):
            seed = derive_seed(self.seed, name)
            return layer.add_weight(
                name=name,
                shape=(self.projected_length, layer.max_length),
                initializer=keras.initializers.RandomNormal(
                    0, layer.max_length**-0.5, seed
                ),
            )

        self.key_projection = projection("key_projection")
        self.value_projection = projection("value_projection")

    def prepare_keys(self, keys, scale, mask=None):
        """G K, (batch, heads, k, size)."""
        if mask is not None:
            keys = ops.where(mask[:, None, :, None], keys, ops.zeros_like(keys))
        return _times(self._columns("key_projection", keys, 2), keys), None

    def further_inputs(self, x, context, mask=None, training=None):
        """The columns of F for the text's positions, (k, m)."""
        return (self._columns("value_projection", context, 1),)

    def _columns(self, name, x, axis):
        """Those of a weight for the positions of x along an axis."""
        weight = getattr(self, name)
        return ops.cast(weight[:, : ops.shape(x)[axis]], x.dtype)

    def make(self, inputs, columns):
        """softmax(Q (G K)^T), (batch, heads, n, k), and the inputs."""
        queries, keys, _ = inputs
        scores = ops.matmul(queries, transpose(keys))
        return ops.softmax(scores, axis=-1), *inputs

    def times(self, parts, x):
        weights, *_, projection = parts
        return ops.matmul(weights, _times(projection, x))

    def transposed_times(self, parts, y):
        weights, *_, projection = parts
        sums = transposed_times(weights, y)
        return ops.einsum("km,bhkc->bhmc", projection, sums)

    def gradient(self, parts, left, right):
        weights, queries, keys, projection = parts
        slopes = ops.matmul(left, transpose(_times(projection, right)))
        slopes = slopes - ops.sum(weights * slopes, axis=-1, keepdims=True)
        slopes = weights * slopes
        return (
            ops.matmul(slopes, keys),
            transposed_times(slopes, queries),
            ops.einsum("bhkc,bhmc->km", transposed_times(weights, left), right),
        )


# A product of a matrix that all texts and heads share, and its gradient, is one.


def _times(projection, x):
    """(batch, heads, k, columns) of (k, m) and (batch, heads, m, columns)."""
    return ops.einsum("bhmc,km->bhkc", x, projection)
