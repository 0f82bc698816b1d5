"""What an attention mechanism is."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras

from common.fields import Field
from models.fidelity import official_choices

USES = ("self", "causal", "cross")
# What a mechanism must define to be used so.
METHODS = {
    "self": ("attend", "products"),
    "causal": ("attend", "empty_cache", "step", "attend_step"),
    "cross": ("attend", "memory", "attend_to_memory"),
}


class Memory(NamedTuple):
    """What a decoder's step needs of its attentions, and no target token changes.

    Attributes:
      constants: of the causal one.
      source: of the one to the source.
    """

    constants: Any
    source: Any


class Attention(keras.layers.Layer):
    """A mechanism: its weights, and both ways of evaluating them.

    A block of L depths has one layer for each of its uses. A model of one depth a
    layer, as the Transformer, is the case of L = 1. Shapes: queries n, keys m, width d.

    *In parallel*, for training. The start sees the block's input; then each depth
    attends once.

        state = attention(x, context, padding_mask, training=training)
        attended = attention.attend(state, depth, values)

      x: (batch, n, d), where queries come from.
      context: (batch, m, d), where keys come from: `x` itself, or a source. Causal
        queries may follow m - n earlier keys: `x` is then the end of the context.
      padding_mask: (batch, m), true at real tokens; None if all are real.
      values: (batch, m, d), what the depth attends to. A mechanism that projects values
        of its own from the context leaves them aside.
      attended: (batch, n, d), heads merged, not yet projected. Zero where a query sees
        no real token.

    *Recurrently*, for decoding: one position at a time, for all beams of a sentence.
    As causal attention:

        constants = attention.constants()             what no token changes
        cache = attention.empty_cache(batch_size, beams)
        state = attention.step(x, constants, cache, visible)
        attended, state = attention.attend_step(state, depth, values)
        cache = state.cache                           when every depth has attended

      x, values, attended: (batch, beams, d).
      cache: nested `models.attention.cache.Slots` (kept for each position and beam)
        and `State`s (of a fixed size, handed on from parents to survivors).
      visible: from `models.attention.cache.SlotMap`; None where no cache has slots.

    As cross-attention, to a source that all depths share:

        memory = attention.memory(context, values, padding_mask)
        attended = attention.attend_to_memory(x, memory)     a list, one a depth

    Class attributes:
      uses: of `USES`, what it serves as. It must define the `METHODS` of each.
      variants: hyperparameters by what they append to a variant's name, e.g.
        {"": {"feature_map": "elu1"}, "favor": {"feature_map": "favor"}}.
      fields: {hyperparameter: `common.fields.Field`}, unless `fields_of` says more.
      inert_weights: names of weights on which no output depends. Converting a model
        drops them, or leaves them as initialised, and a run in another form leaves
        them unused.

    Its matrix products as self-attention, for operation counts, are
    `attention.products(batch_size, length)`, a list of `models.products.Product`.

    Args:
      num_heads: H. Must divide the width.
      num_depths: L, how many times the block attends.
      use: of `USES`; "causal" lets a query see no key that comes after it.
      dropout: rate of the model.
      fidelity: see `models.fidelity`, where a mechanism differs by it.
      seed: of the initial weights and of the dropout.

    Raises:
      ValueError: if it does not serve that use.
      TypeError: if it lacks one of the use's `METHODS`.
    """

    uses = USES
    variants = {"": {}}
    fields = {}
    inert_weights = ()

    def __init__(
        self,
        num_heads,
        num_depths=1,
        use="self",
        dropout=0.0,
        fidelity="paper",
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        name = type(self).__name__
        if use not in self.uses:
            raise ValueError(f"{name} serves as {self.uses}, got use={use!r}")
        for method in METHODS[use]:
            if not hasattr(self, method):
                raise TypeError(f"{name}: as {use}-attention it needs {method}()")
        self.num_heads = num_heads
        self.num_depths = num_depths
        self.use = use
        self.dropout = dropout
        self.fidelity = fidelity
        self.official_choices = official_choices(fidelity)
        self.seed = seed

    @classmethod
    def fields_of(cls, hyperparameters: Mapping) -> dict[str, Field]:
        """What the hyperparameters of a variant may hold; others are fixed by it."""
        return cls.fields

    @property
    def causal(self):
        return self.use == "causal"

    def constants(self):
        """What `step` needs that no token changes."""
        return ()

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_depths": self.num_depths,
            "use": self.use,
            "dropout": self.dropout,
            "fidelity": self.fidelity,
            "seed": self.seed,
        }
