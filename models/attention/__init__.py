"""Attention: operators, a file each, and the one way of reading them.

To add an attention, write its operator and name it here. It then serves every model.
"""

from models.attention.big_bird import BigBirdOperator
from models.attention.delta import DeltaOperator
from models.attention.gated_rfa import GatedRfaOperator
from models.attention.linear import LinearOperator
from models.attention.linformer import LinformerOperator
from models.attention.local_window import LocalWindowOperator
from models.attention.operator import Operator
from models.attention.reformer import ReformerOperator
from models.attention.rfa import RfaOperator
from models.attention.sinkhorn import SinkhornOperator
from models.attention.softmax import SoftmaxOperator
from models.attention.state_space import StateSpaceOperator
from models.attention.synthesizer import SynthesizerOperator
from models.attention.talking_heads import TalkingHeadsOperator

OPERATORS: dict[str, type[Operator]] = {
    "softmax": SoftmaxOperator,
    "linear": LinearOperator,
    "local": LocalWindowOperator,
    "linformer": LinformerOperator,
    "synthesizer": SynthesizerOperator,
    "big-bird": BigBirdOperator,
    "sinkhorn": SinkhornOperator,
    "reformer": ReformerOperator,
    "rfa": RfaOperator,
    "rfa-gated": GatedRfaOperator,
    "state-space": StateSpaceOperator,
    "talking-heads": TalkingHeadsOperator,
    "delta": DeltaOperator,
}
