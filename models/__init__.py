"""Keras models, written with keras.ops only.

To add a model, write its file with an `Architecture` and name it in `ARCHITECTURES`; to
add an attention, see `models.attention`.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import keras

from common.errors import known_names
from common.fields import choice, fail, integer, optional, rate
from models.architecture import Architecture
from models.bag_of_words import ARCHITECTURE as BAG_OF_WORDS
from models.classifier import SequenceClassifier
from models.encoder_decoder import EncoderDecoder
from models.language_model import LanguageModel
from models.layers.embedding import IN_ATTENTION, POSITIONS, RELATIVE
from models.masked_model import MaskedModel
from models.seeds import derive_seed
from models.transevolve import ARCHITECTURE as TRANSEVOLVE
from models.transformer import ARCHITECTURE as TRANSFORMER

ARCHITECTURES: dict[str, Architecture] = {
    "transevolve": TRANSEVOLVE,
    "transformer": TRANSFORMER,
    "bag-of-words": BAG_OF_WORDS,
}
# The variant that the paper compares its own with.
BASELINE = "transformer"
DTYPES = ("float32", "mixed_bfloat16")
VECTORS_OF_TOKENS = ("embeddings", "clusters")
# What the `model` part of a config holds for every architecture.
FIELDS = {
    "hidden_dim": integer("d, the width.", maximum=65_536),
    "ffn_dim": integer("Inner size of the feed-forward.", maximum=262_144),
    "num_heads": integer("H, attention heads.", maximum=1_024),
    "dropout": rate("Dropout."),
    "dtype": choice(
        "Of activations and products, as Keras names it; weights are float32.", *DTYPES
    ),
    "positions": optional(
        choice("How tokens get their positions; sinusoidal if unset.", *POSITIONS)
    ),
}


def variants(in_paper: bool | None = None) -> list[str]:
    """The names of all variants, or of those (not) in the paper.

    A variant with another mechanism than its architecture's first has that name
    appended, and what the mechanism's `variants` append: it is not the paper's.
    """
    return [
        name
        for name, named in _named_variants().items()
        if in_paper in (None, named.in_paper)
    ]


def base_of(name: str) -> str:
    """The variant of the same model with its architecture's first mechanism.

    Raises:
      KeyError: if there is none of that name.
    """
    return bases()[name]


def bases() -> dict[str, str]:
    """Maps each variant to what `base_of` gives."""
    return {name: named.base for name, named in _named_variants().items()}


def in_form(name: str, attention: str) -> str:
    """The variant of the same model with another mechanism.

    Args:
      name: of a variant.
      attention: what variants with that mechanism have appended, as in "linear-favor",
        or the name of the architecture's first.

    Raises:
      KeyError: if there is no variant of that name.
      ValueError: if its model has no such mechanism.
    """
    named = _named_variants()[name]
    architecture = named.config["architecture"]
    suffixes = {
        suffix or attention_config.get("name", "none"): suffix
        for suffix, attention_config in _attentions(architecture).items()
    }
    if attention not in suffixes:
        expected = known_names(attention, suffixes)
        raise ValueError(f"expected one of {expected}, found {attention}")
    return "-".join(filter(None, (named.base, suffixes[attention])))


def variant_config(name: str) -> dict:
    """What a variant lays down of the `model` part of a config.

    Raises:
      KeyError: if there is none of that name.
    """
    return _named_variants()[name].config


class _Named(NamedTuple):
    base: str
    in_paper: bool
    config: dict


def _named_variants():
    named = {}
    for key, architecture in ARCHITECTURES.items():
        for base, variant in architecture.variants.items():
            for suffix, attention in _attentions(key).items():
                name = f"{base}-{suffix}" if suffix else base
                attention = {"attention": attention} if attention else {}
                config = {"architecture": key, **attention, **variant.arguments}
                in_paper = variant.in_paper and not suffix
                named[name] = _Named(base, in_paper, config)
    return named


def _attentions(architecture):
    """{what it appends to a variant's name: the `attention` part of a config}."""
    attentions = ARCHITECTURES[architecture].attentions
    if attentions is None:
        return {"": {}}
    suffixes = {}
    for name, kind in attentions.named().items():
        # The first is what a variant means that names none.
        shown_name = name if suffixes else ""
        for suffix, hyperparameters in kind.variants.items():
            parts = filter(None, (shown_name, suffix))
            suffixes["-".join(parts)] = {"name": name, **hyperparameters}
    return suffixes


def attention_kind(config: Mapping):
    """What the `attention` of the `model` part of a config states of itself: an
    `Operator` or an `Attention`; None for a model without.

    Raises:
      KeyError: if there is none of that name.
    """
    attentions = ARCHITECTURES[config["architecture"]].attentions
    if attentions is None:
        return None
    return attentions.named()[config["attention"]["name"]]


def check(config) -> None:
    """Raises `UserError` if the `model` part of a config does not fit together, or its
    attention does not fit the rest."""
    ARCHITECTURES[config.model.architecture].check(config.model)
    kind, positions = attention_kind(config.model), config.model.get("positions")
    if kind is not None:
        kind.check(config)
        if positions in RELATIVE and not kind.takes_relative_positions:
            where = f"with the attention {config.model.attention.name}"
            _refuse(positions, RELATIVE, where)
    elif positions in IN_ATTENTION:
        _refuse(positions, IN_ATTENTION, "in a model without attention")


def _refuse(positions, refused, where):
    allowed = ", ".join(name for name in POSITIONS if name not in refused)
    fail("model.positions", f"one of {allowed} {where}", positions)


def can_encode(config: Mapping) -> bool:
    """Whether the `model` part of a config can be an encoder."""
    return _serves(config, {"self"})


def can_decode(config: Mapping) -> bool:
    """Whether the `model` part of a config can be an encoder-decoder."""
    if ARCHITECTURES[config["architecture"]].decoder is None:
        return False
    kind = attention_kind(config)
    return kind is None or (kind.can_decode and {"self", "causal"} <= set(kind.uses))


def can_model_language(config: Mapping) -> bool:
    """Whether the `model` part of a config can be a language model."""
    return can_be_causal(config) and attention_kind(config).can_decode


def can_be_causal(config: Mapping) -> bool:
    """Whether it can be an encoder of which tokens see none after them."""
    return attention_kind(config) is not None and _serves(config, {"causal"})


def _serves(config, uses):
    kind = attention_kind(config)
    return kind is None or uses <= set(kind.uses)


def build_classifier(
    config: Mapping,
    vocabulary_size: int,
    num_classes: int,
    seed: int = 0,
    max_length: int | None = None,
) -> SequenceClassifier:
    """Builds the classifier that the `model` part of a config describes.

    Args:
      config: `architecture`, a key of `ARCHITECTURES`, `hidden_dim`, and the arguments
        of its encoder.
      vocabulary_size: number of token ids, padding (0) included.
      num_classes: number of logits.
      seed: of initial weights, dropout and the random rotations.
      max_length: of the texts that it must serve; some attentions need it.

    Returns:
      The model, with its weights made.
    """
    return _build(
        SequenceClassifier,
        "classifier",
        config,
        vocabulary_size,
        seed,
        max_length,
        num_classes=num_classes,
    )


def build_masked_model(
    config: Mapping,
    vocabulary_size: int,
    seed: int = 0,
    max_length: int | None = None,
) -> MaskedModel:
    """Builds the model of hidden tokens that the `model` part of a config describes.

    The arguments and the encoder are those of `build_classifier`.
    """
    return _build(
        MaskedModel, "masked_model", config, vocabulary_size, seed, max_length
    )


def build_encoder_decoder(
    config: Mapping,
    vocabulary_size: int,
    seed: int = 0,
    max_length: int | None = None,
) -> EncoderDecoder:
    """Builds the encoder-decoder that the `model` part of a config describes.

    Args:
      config: `architecture`, a key of `ARCHITECTURES`, `hidden_dim`, and the arguments
        that its encoder and its decoder share.
      vocabulary_size, seed, max_length: as for `build_classifier`.

    Returns:
      The model, with its weights made.

    Raises:
      ValueError: if the architecture has no decoder, or the attention cannot decode.
    """
    if not can_decode(config):
        raise ValueError(f"expected a model with a decoder, got {dict(config)}")
    return _build(
        EncoderDecoder, "encoder_decoder", config, vocabulary_size, seed, max_length
    )


def build_language_model(
    config: Mapping,
    vocabulary_size: int,
    seed: int = 0,
    max_length: int | None = None,
) -> LanguageModel:
    """Builds the language model that the `model` part of a config describes.

    Args:
      config: `architecture`, a key of `ARCHITECTURES`, `hidden_dim`, and the arguments
        of its encoder, which is causal here. It may have `adaptive_cutoffs`, see
        `LanguageModel`, and `initial_deviation`, the standard deviation of a normal
        distribution from which projections and vectors of tokens are drawn.
      vocabulary_size, seed, max_length: as for `build_classifier`.

    Returns:
      The model, with its weights made.

    Raises:
      ValueError: if the attention is not causal, or cannot decode.
    """
    if not can_model_language(config):
        raise ValueError(f"expected a causal model that decodes, got {dict(config)}")
    config = {**config, "use": "causal"}
    cutoffs = config.pop("adaptive_cutoffs", None) or ()
    deviation = config.pop("initial_deviation", None)
    model = _build(
        LanguageModel,
        "language_model",
        config,
        vocabulary_size,
        seed,
        max_length,
        cutoffs=cutoffs,
    )
    if deviation:
        _draw(model, deviation, seed)
    return model


def _build(kind, name, config, vocabulary_size, seed, max_length, **further):
    """A `TokenModel` of a kind, with its weights made."""
    arguments = dict(config)
    architecture = ARCHITECTURES[arguments.pop("architecture")]
    hidden_dim, positions = arguments.pop("hidden_dim"), arguments.get("positions")
    if "attention" in arguments:
        arguments["attention"] = dict(arguments["attention"])
        arguments["max_length"] = max_length
    else:
        arguments.pop("positions", None)
    parts = {}
    for part in kind.parts:
        layer = getattr(architecture, part)
        parts[part] = layer(**arguments, seed=derive_seed(seed, part), name=part)
    model = kind(
        vocabulary_size=vocabulary_size,
        hidden_dim=hidden_dim,
        **parts,
        **further,
        positions=positions,
        max_length=max_length,
        seed=seed,
        dtype=arguments.get("dtype"),
        name=name,
    )
    model.build((None, None))
    return model


def _draw(model, deviation, seed):
    for weight in model.trainable_weights:
        if weight.name.endswith("kernel") or weight.name in VECTORS_OF_TOKENS:
            seed_of_weight = derive_seed(seed, *weight.path.split("/"))
            normal = keras.initializers.RandomNormal(
                stddev=deviation, seed=seed_of_weight
            )
            weight.assign(normal(weight.shape, weight.dtype))


def count_parameters(model: keras.Model) -> int:
    """How many numbers training may change: no counters, nor the states of seeds."""
    return sum(math.prod(weight.shape) for weight in model.trainable_weights)
