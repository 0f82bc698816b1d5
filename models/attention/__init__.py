"""Attention mechanisms: a file each, with both its evaluations.

To add one, write its file and name it here, below each model that it serves.
"""

from models.attention.factored import FactoredAttention
from models.attention.linear import LinearAttention
from models.attention.linear_evolving import LinearEvolvingAttention
from models.attention.literal import LiteralAttention
from models.attention.mechanism import Attention
from models.attention.softmax import SoftmaxAttention
from models.attention.unattended import NoAttention

# By model and by name. The first of a model is what its variants mean that name none.
# A mechanism's `uses` say whether it serves as self-, causal and cross-attention.
MECHANISMS = {
    "transevolve": {
        "factored": FactoredAttention,
        "literal": LiteralAttention,
        "linear": LinearEvolvingAttention,
        "none": NoAttention,
    },
    "transformer": {
        "softmax": SoftmaxAttention,
        "linear": LinearAttention,
    },
}


def make_attention(model: str, config: dict, **arguments) -> Attention:
    """Makes the mechanism that the `model.attention` part of a config describes.

    Args:
      model: a key of `MECHANISMS`.
      config: `name`, of a mechanism of that model, and its hyperparameters.
      **arguments: of `Attention`, which the model has for any mechanism.

    Raises:
      ValueError: if the model has no mechanism of that name.
    """
    hyperparameters = dict(config)
    name = hyperparameters.pop("name")
    known = MECHANISMS[model]
    if name not in known:
        raise ValueError(f"attention must be one of {tuple(known)}, got {name!r}")
    return known[name](**hyperparameters, **arguments)
