"""The attentions of TransEvolve."""

from models.attention.attention import Attentions
from models.transevolve.attention import TimeEvolvingAttention
from models.transevolve.literal import LiteralAttention
from models.transevolve.no_attention import NoAttention

ATTENTIONS = Attentions(
    TimeEvolvingAttention,
    softmax="factored",
    layers={"literal": LiteralAttention, "none": NoAttention},
)
