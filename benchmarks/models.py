"""The models that a benchmark can compare, by name."""

import importlib.util
from collections.abc import Collection

import keras

from benchmarks import checkout
from common.errors import UserError
from models import (
    base_of,
    build_classifier,
    build_encoder_decoder,
    can_be_causal,
    can_decode,
    variant_config,
    variants,
)
from models.classifier import SequenceClassifier
from models.encoder_decoder import EncoderDecoder
from models.products import Product

BASELINE = "transformer"
LITERAL, FLOOR = "-literal", "-none"
# Outside peers, and the package that each needs.
KERAS_HUB, PYTORCH = "keras-hub", "pytorch"
PEERS = {KERAS_HUB: "keras_hub", PYTORCH: "torch"}
# Section 7.1.
SIZES = {
    "small": {"hidden_dim": 256, "ffn_dim": 1024},
    "base": {"hidden_dim": 512, "ffn_dim": 2048},
}
# Bytes, two classes: the task of the paper's timings.
VOCABULARY_SIZE = 257
NUM_CLASSES = 2
# Of encoder-decoders.
NUM_SUBWORDS = 8_000


def check(
    chosen: list[str],
    decoding: bool = False,
    causal: bool = False,
    peers: Collection[str] = (),
) -> None:
    """Raises UserError if a name is unknown or cannot be had here.

    Args:
      chosen: names of variants.
      decoding: whether they must be encoder-decoders.
      causal: whether they must be encoders of which tokens see none after them.
      peers: keys of `PEERS` that may be chosen too.
    """
    allowed = variants()
    if decoding:
        allowed = [name for name in allowed if can_decode(variant_config(name))]
    elif causal:
        allowed = [name for name in allowed if can_be_causal(variant_config(name))]
    allowed += peers
    for name in chosen:
        if name not in allowed:
            raise UserError(f"--models: expected some of {allowed}, found {name!r}")
        package = PEERS.get(name)
        if package and importlib.util.find_spec(package) is None:
            raise UserError(f"--models: {name}: expected {package} to be installed")


def compared_with(name: str) -> dict[str, str]:
    """The models that a model is set against, by the field of the ratio of speeds."""
    found = {"ratio_to_transformer": BASELINE}
    folder, variant = checkout.split(name)
    if folder:
        return {**found, "ratio_to_here": variant}
    if name in variants():
        base = base_of(name)
        for field, form in (("ratio_to_literal", LITERAL), ("ratio_to_floor", FLOOR)):
            if name != base + form:
                found[field] = base + form
    return found


def model_config(name: str, size: str, causal: bool = False) -> dict:
    """The `model` part of a config; a peer has the baseline's."""
    return {
        **variant_config(BASELINE if name in PEERS else name),
        **SIZES[size],
        "num_heads": 8,
        "dropout": 0.1,
        **({"use": "causal"} if causal else {}),
    }


def build(name: str, size: str, causal: bool = False) -> SequenceClassifier:
    """Makes a model of those names, at a size of `SIZES`."""
    config = model_config(name, size, causal)
    if name != KERAS_HUB:
        return build_classifier(config, VOCABULARY_SIZE, NUM_CLASSES)
    model = SequenceClassifier(
        VOCABULARY_SIZE,
        NUM_CLASSES,
        config["hidden_dim"],
        KerasHubEncoder(
            config["num_layers"],
            config["num_heads"],
            config["ffn_dim"],
            name="encoder",
        ),
        name="classifier",
    )
    model.build((None, None))
    return model


def build_translator(name: str, size: str) -> EncoderDecoder:
    """Makes an encoder-decoder of that name, at a size of `SIZES`."""
    return build_encoder_decoder(model_config(name, size), NUM_SUBWORDS)


def products(model, batch_size: int, length: int) -> list[Product]:
    """The matrix products that a classifier's encoder states; none of a peer's."""
    is_classifier = isinstance(model, SequenceClassifier)
    stated = is_classifier and getattr(model.encoder, "products", None)
    return stated(batch_size, length) if stated else []


class KerasHubEncoder(keras.layers.Layer):
    """keras_hub's Transformer layers, pre-normalised, and a closing LayerNorm.

    Without dropout, in its favour: it would drop attention weights too, as no model
    here does.
    """

    def __init__(self, num_layers, num_heads, ffn_dim, **kwargs):
        from keras_hub.layers import TransformerEncoder

        super().__init__(**kwargs)
        self.layers = [
            TransformerEncoder(
                ffn_dim, num_heads, normalize_first=True, name=f"layer_{i}"
            )
            for i in range(num_layers)
        ]
        self.output_norm = keras.layers.LayerNormalization(name="output_norm")

    def build(self, input_shape):
        for layer in (*self.layers, self.output_norm):
            layer.build(input_shape)

    def call(self, x, padding_mask=None, training=None):
        for layer in self.layers:
            x = layer(x, padding_mask=padding_mask, training=training)
        return self.output_norm(x)
