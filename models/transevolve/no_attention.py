"""No attention in TransEvolve: the lower bound of what its attention takes."""

import keras
from keras import ops

from models.attention.no_attention import Unattending
from models.products import with_gradients
from models.transevolve.attention import TimeEvolvingAttention


@keras.saving.register_keras_serializable("transevolve")
class NoAttention(Unattending, TimeEvolvingAttention):
    """Projections and key biases as they are; each depth returns its values unattended.

    What it takes is what a model of time-evolving attention takes besides attending.
    See `TimeEvolvingAttention` for the arguments.
    """

    def call(self, x, context, padding_mask=None, training=None):
        """What the projections leave, see `Unattending.trace`."""
        queries = self.project_queries(x, training)
        keys = self.project_keys(context, training)
        biases = ops.mean(self.biases(keys, self.constants()), axis=(1, 3))
        return self.trace(x, context, queries, keys, biases[..., None])

    def read(self, state, number, values):
        """The values, (batch, length, d)."""
        return ops.cast(values, self.compute_dtype) + state

    def products(self, batch_size, length):
        """The projections and the biases."""
        tokens = batch_size * length
        projection = (tokens, self.hidden_dim, self.projected_dim)
        biases = (tokens, self.projected_dim, self.num_heads * self.num_reads)
        return [
            *with_gradients("query, key", 2, 1, projection),
            *with_gradients("biases", 1, 1, biases),
        ]
