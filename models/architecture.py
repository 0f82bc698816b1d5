"""What a model file says of itself, and how it chooses attentions by name."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from common.fields import Field
from models.attention import OPERATORS
from models.attention.attention import Attention

# A model of more takes many minutes to build and to trace, before its first update.
MOST_LAYERS = 256


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


class Variant(NamedTuple):
    """A model by name.

    Attributes:
      arguments: of the architecture's layers, in which it departs from the others.
      in_paper: whether it is one of the paper's five.
    """

    arguments: Mapping[str, Any]
    in_paper: bool = False


class Architecture(NamedTuple):
    """Encoder, decoder and named variants of a model.

    Both layers take the arguments `attention` (if the architecture has `attentions`),
    `num_heads`, `ffn_dim`, `dropout`, `seed`, those of `fields`, and Keras's own. An
    encoder is called with (batch, length, width) and a padding mask, and gives the same
    shape. With attention it also takes `max_length`, see `Attention`, and `use`, "self"
    or "causal". A decoder has the methods of `models.stack.DecoderStack`.

    Attributes:
      encoder: layer class, or a function of its arguments that makes the layer.
      decoder: layer class; None where the model is encoder-only.
      variants: by name.
      attentions: None for a model without attention.
      fields: of the `model` part of a config, its own. Those that no variant lays down
        are choices, by name, and unset as long as no flag sets them.
      check: function of the `model` part of a config that raises `UserError` if its
        values do not fit together.
      least_size: function of the `model` part of a config: so many weights, or as much
        memory, its encoder needs at least.
    """

    encoder: type
    decoder: type | None
    variants: Mapping[str, Variant]
    attentions: Attentions | None = None
    fields: Mapping[str, Field] = {}
    check: Callable[[Any], None] = lambda config: None
    least_size: Callable[[Any], int] = lambda config: 0
