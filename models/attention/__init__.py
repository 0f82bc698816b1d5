"""Attention: operators, a file each, and the one way of reading them.

To add an attention, write its operator and name it here. It then serves every model.
"""

from models.attention.linear import LinearOperator
from models.attention.linformer import LinformerOperator
from models.attention.local_window import LocalWindowOperator
from models.attention.operator import Operator
from models.attention.softmax import SoftmaxOperator
from models.attention.synthesizer import SynthesizerOperator

OPERATORS: dict[str, type[Operator]] = {
    "softmax": SoftmaxOperator,
    "linear": LinearOperator,
    "local": LocalWindowOperator,
    "linformer": LinformerOperator,
    "synthesizer": SynthesizerOperator,
}
