"""No attention in TransEvolve: the lower bound of what its attention takes."""

import keras

from models.attention.no_attention import Unattending
from models.transevolve.attention import TimeEvolvingAttention


@keras.saving.register_keras_serializable("transevolve")
class NoAttention(Unattending, TimeEvolvingAttention):
    """Projections and key biases as they are; each depth returns its values unattended.

    What it takes is what a model of time-evolving attention takes besides attending.
    See `TimeEvolvingAttention` for the arguments.
    """
