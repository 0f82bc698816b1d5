"""No attention: the lower bound of what a model with attention takes."""

from keras import ops

from models.attention.heads import check_a_query_for_each_key

# Of what is computed and not used: it keeps the projections, forward and backward, and
# is nothing beside a value.
TRACE = 1e-20


class Unattending:
    """Makes of an `Attention` one that returns its values, unattended."""

    uses = ("self", "causal")
    can_decode = False
    takes_relative_positions = False

    def trace(self, x, context, *projected):
        """What projections leave, (batch, 1, d), too small to change a value.

        Args:
          x, context: of the layer.
          *projected: (batch, length, at least d) each.

        Raises:
          ValueError: if there are not as many queries as keys.
        """
        check_a_query_for_each_key("NoAttention", x, context)
        sums = ops.mean(sum(projected), axis=1, keepdims=True)
        return TRACE * sums[..., : self.hidden_dim]
