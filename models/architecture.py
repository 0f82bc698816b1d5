"""What a model file says of itself."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from common.fields import Field
from models.attention.attention import Attentions

# A model of more takes many minutes to build and to trace, before its first update.
MOST_LAYERS = 256


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
