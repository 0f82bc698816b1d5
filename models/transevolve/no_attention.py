"""No attention: the lower bound of what a model with attention takes."""

from typing import Any, NamedTuple

import keras
from keras import ops

from models.products import with_gradients
from models.transevolve.attention import TimeEvolvingAttention

# Of what is computed and not used: it keeps the projections, forward and backward, and
# is nothing beside a value.
TRACE = 1e-20


class Unattended(NamedTuple):
    """What the projections leave, (batch, 1, d), too small to change a value."""

    trace: Any


@keras.saving.register_keras_serializable("transevolve")
class NoAttention(TimeEvolvingAttention):
    """Projections and key biases as they are; each depth returns its values unattended.

    What it takes is what a model of time-evolving attention takes besides attending.
    See `TimeEvolvingAttention` for the arguments.
    """

    uses = ("self", "causal")
    can_decode = False

    def call(self, x, context, padding_mask=None, training=None):
        """`Unattended`.

        Raises:
          ValueError: if there are not as many queries as keys.
        """
        if x.shape[1] != context.shape[1]:
            raise ValueError(
                f"NoAttention needs a query for each key, got {x.shape[1]} queries and "
                f"{context.shape[1]} keys"
            )
        queries = self.project_queries(x, training)
        keys = self.project_keys(context, training)
        biases = ops.mean(self.biases(keys, self.constants()), axis=(1, 2))
        sums = ops.mean(queries + keys, axis=1, keepdims=True)[..., : self.hidden_dim]
        return Unattended(TRACE * (sums + ops.mean(biases)))

    def read(self, state, number, values):
        """The values, (batch, length, d)."""
        return ops.cast(values, self.compute_dtype) + state.trace

    def products(self, batch_size, length):
        """The projections and the biases."""
        tokens = batch_size * length
        projection = (tokens, self.hidden_dim, self.projected_dim)
        biases = (tokens, self.projected_dim, self.num_heads * self.num_reads)
        return [
            *with_gradients("query, key", 2, 1, projection),
            *with_gradients("biases", 1, 1, biases),
        ]
