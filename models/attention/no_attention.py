"""No attention: the lower bound of what a model with attention takes."""

from typing import Any, NamedTuple

from keras import ops

from models.attention.heads import check_a_query_for_each_key

# Of what is computed and not used: it keeps the projections, forward and backward, and
# is nothing beside a value.
TRACE = 1e-20


class Unattended(NamedTuple):
    """What is left of the projections, and what is read: values as they are.

    Attributes:
      trace: (batch, 1, d), too small to change a value.
      values: those that were projected, (batch, length, d); None if reads have theirs.
    """

    trace: Any
    values: Any

    def read(self, number, values):
        """The values, (batch, length, d)."""
        values = values if self.values is None else self.values
        return ops.cast(values, self.trace.dtype) + self.trace


class Unattending:
    """Makes of an `Attention` one that projects, and returns its values unattended."""

    uses = ("self", "causal")
    can_decode = False
    takes_relative_positions = False

    def call(self, x, context, padding_mask=None, training=None, memory=None):
        """Projects, and leaves all but values aside: `Unattended`.

        Raises:
          ValueError: if there are not as many queries as keys.
        """
        check_a_query_for_each_key("NoAttention", x, context)
        queries, keys, values = self.project(x, context, training)
        projected = [queries, keys]
        biases = self.biases(keys, context, self.constants())
        if biases is not None:
            biases = ops.cast(ops.mean(biases, axis=(1, 3)), keys.dtype)
            projected.append(biases[..., None])
        sums = ops.mean(sum(projected), axis=1, keepdims=True)
        return Unattended(TRACE * sums[..., : self.hidden_dim], values)
