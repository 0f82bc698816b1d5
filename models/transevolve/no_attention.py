"""No attention in TransEvolve: the lower bound of what its attention takes."""

import keras
from keras import ops

from models.attention.no_attention import Unattending
from models.transevolve.attention import TimeEvolvingAttention


@keras.saving.register_keras_serializable("transevolve")
class NoAttention(Unattending, TimeEvolvingAttention):
    """Projections and key biases as they are; each depth returns its values unattended.

    What it takes is what a model of time-evolving attention takes besides attending.
    See `TimeEvolvingAttention` for the arguments.
    """

    def call(self, x, context, padding_mask=None, training=None):
        """What the projections leave, see `Unattending.trace`."""
        queries, keys, _ = self.project(x, context, training)
        biases = ops.mean(self.biases(keys, context, self.constants()), axis=(1, 3))
        return self.trace(x, context, queries, keys, biases[..., None])

    def read(self, made, number, values):
        """The values, (batch, length, d)."""
        return ops.cast(values, self.compute_dtype) + made
