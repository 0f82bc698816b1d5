"""What an attention layer is: projections, and the operator made of them."""

from collections.abc import Mapping
from typing import NamedTuple

import keras
from keras import ops

from models.attention import OPERATORS
from models.attention.heads import num_earlier, rotated, split_heads
from models.attention.operator import AttentionKind
from models.attention.relative_positions import RELATIVE_POSITIONS
from models.fidelity import official_choices


class Attention(AttentionKind, keras.layers.Layer):
    """Projections of queries and keys, the operator made of them, and its reads.

    A block of L depths has one layer for each of its uses. A model of one depth a
    layer, as the Transformer, is the case of L = 1. Shapes: queries n, keys m, width d.

    *In parallel*, for training. The call sees the block's input and makes the operator;
    then each depth reads it.

        made = attention(x, context, padding_mask, training=training)
        attended = attention.read(made, number, values)

      x: (batch, n, d), where queries come from.
      context: (batch, m, d), where keys come from: `x` itself, or a source. Causal
        queries may follow m - n earlier keys: `x` is then the end of the context.
      padding_mask: (batch, m), true at real tokens; None if all are real.
      number: of the read, from 0; depth by depth, and in a depth stage by stage.
      values: (batch, m, d), what the depth reads. A layer that projects values of its
        own from the context leaves them aside.
      attended: (batch, n, d), heads merged, not yet projected. Zero where a query sees
        no real token.

    *Recurrently*, for decoding: one position at a time, for all beams of a sentence.
    As causal attention:

        constants = attention.constants()             what no token changes
        cache = attention.empty_cache(batch_size, beams)
        made = attention.step(x, constants, cache, visible, position)
        attended, made = attention.read_step(made, number, values)
        cache = made.cache                           after the last read

      x, values, attended: (batch, beams, d).
      cache: nested `models.attention.cache.Slots` (kept for each position and beam)
        and `State`s (of a fixed size, handed on from parents to survivors).
      visible: from `models.attention.cache.SlotMap`; None where no cache has slots.
      position: of the tokens, a scalar; needed where positions are in the attention.

    As cross-attention, to a source that all depths share:

        cache = attention.source_cache(context, values, padding_mask)
        attended = attention.read_source(x, cache)    a list, one a read

    Class attributes: of `AttentionKind`, for a layer that is registered as an attention
    of its own.

    Args:
      operator: a key of `models.attention.OPERATORS`.
      num_heads: H. Must divide the width.
      num_depths: L, in how many depths it is read.
      use: of `USES`; "causal" lets a query see no key that comes after it.
      offsets: of the reads of each depth, as fractions of a depth: see
        `models.residual_step`.
      positions: of the model, of `models.layers.embedding.POSITIONS`. As "rotary"
        queries and keys are rotated by them, as one of `RELATIVE_POSITIONS` scores
        have something added for distances. Cross-attention, whose positions are those
        of two texts, takes neither.
      dropout: rate of the model.
      fidelity: see `models.fidelity`, where a layer differs by it.
      max_length: of the texts that it must serve; None if not known. An operator whose
        weights depend on it makes them in `Operator.build`.
      seed: of the initial weights and of the dropout.
      name, dtype, trainable: Keras's.
      **hyperparameters: of the operator.

    Raises:
      ValueError: if it does not serve that use, or takes no relative positions.
    """

    can_decode = True
    takes_relative_positions = True

    def __init__(
        self,
        num_heads,
        operator="softmax",
        num_depths=1,
        use="self",
        offsets=(0.0,),
        positions=None,
        dropout=0.0,
        fidelity="paper",
        max_length=None,
        seed=0,
        name=None,
        dtype=None,
        trainable=True,
        **hyperparameters,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        kind = OPERATORS[operator]
        for uses in (self.uses, kind.uses):
            if use not in uses:
                raise ValueError(f"{operator} serves as {uses}, got use={use!r}")
        self.operator = kind(num_heads, use, seed, **hyperparameters)
        self.num_heads = num_heads
        self.num_depths = num_depths
        self.use = use
        self.offsets = tuple(offsets)
        self.rotary = positions == "rotary" and use != "cross"
        if positions in RELATIVE_POSITIONS and use != "cross":
            if not (self.takes_relative_positions and kind.takes_relative_positions):
                raise ValueError(f"{operator} takes no relative positions")
            relative = RELATIVE_POSITIONS[positions](num_heads, self.causal, seed)
            self.operator.relative = relative
        self.dropout = dropout
        self.fidelity = fidelity
        self.official_choices = official_choices(fidelity)
        self.max_length = max_length
        self.seed = seed

    def build_operator(self, size):
        """Makes the operator's weights.

        Args:
          size: of a head's queries and keys.
        """
        self.key_size = size
        self.operator.build(self, size)
        if self.operator.relative is not None:
            self.operator.relative.build(self, size)

    @property
    def head_size(self) -> int:
        """Of values."""
        return self.hidden_dim // self.num_heads

    def by_head(self, x, positions=None):
        """Queries or keys (batch, length, width) by head, rotated by positions."""
        x = split_heads(x, self.num_heads)
        return x if positions is None else rotated(x, positions)

    def positions(self, x, context):
        """Those to rotate queries and keys by; None where they are not rotated."""
        if not self.rotary:
            return None, None
        num_queries, num_keys = ops.shape(x)[1], ops.shape(context)[1]
        earlier = num_earlier(num_queries, num_keys) if self.causal else 0
        return ops.arange(num_queries) + earlier, ops.arange(num_keys)

    def position_of_step(self, position):
        """That to rotate all beams of a step by; None where they are not rotated."""
        return ops.reshape(position, (1,)) if self.rotary else None

    @property
    def num_reads(self) -> int:
        return self.num_depths * len(self.offsets)

    @property
    def causal(self) -> bool:
        return self.use == "causal"

    @property
    def all_inert_weights(self) -> tuple[str, ...]:
        """Names of weights, the operator's included, on which no output depends."""
        return self.inert_weights + self.operator.inert_weights

    def constants(self):
        """What `step` needs that no token changes."""
        return ()


class Attentions(NamedTuple):
    """The attentions of a model, by name.

    Attributes:
      layer: makes and reads the operators of `OPERATORS`.
      softmax: the name of the softmax in this model. It is what variants mean that
        name no attention.
      layers: further ones, of this model alone.
    """

    layer: type[Attention]
    softmax: str = "softmax"
    layers: Mapping[str, type[Attention]] = {}

    def named(self) -> dict[str, type]:
        """By name, the operator or the layer that states what it can do."""
        operators = {
            self.softmax if name == "softmax" else name: operator
            for name, operator in OPERATORS.items()
        }
        return {**operators, **self.layers}

    def make(self, config: Mapping, use: str = "self", **arguments) -> Attention:
        """Makes the layer that the `model.attention` part of a config describes.

        Where an operator does not serve as cross-attention, the softmax does.

        Args:
          config: `name`, and the hyperparameters of what it names.
          use: of the layer.
          **arguments: of `Attention`.

        Raises:
          ValueError: if there is none of that name.
        """
        hyperparameters = dict(config)
        name = hyperparameters.pop("name")
        if name not in self.named():
            known = tuple(self.named())
            raise ValueError(f"attention must be one of {known}, got {name!r}")
        if name in self.layers:
            return self.layers[name](use=use, **hyperparameters, **arguments)
        if name == self.softmax or (use == "cross" and use not in OPERATORS[name].uses):
            name, hyperparameters = "softmax", {}
        return self.layer(operator=name, use=use, **hyperparameters, **arguments)
