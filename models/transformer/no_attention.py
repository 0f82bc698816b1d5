"""No attention in the Transformer: the lower bound of what its attentions take."""

import keras

from models.attention.no_attention import Unattending
from models.transformer.attention import ProjectedAttention


@keras.saving.register_keras_serializable("transevolve", "TransformerNoAttention")
class NoAttention(Unattending, ProjectedAttention):
    """Projections as they are; each layer returns its values unattended.

    See `ProjectedAttention` for the arguments.
    """
