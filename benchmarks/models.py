"""The models that a benchmark can compare, by name."""

import importlib.util

import keras

from configs.common import SIZES, VARIANTS
from models import build_classifier
from models.classifier import SequenceClassifier
from training.errors import UserError

BASELINE = "transformer"
LITERAL = "-literal"
PEER = "keras-hub"
# Bytes, two classes: the task of the paper's timings.
VOCABULARY_SIZE = 257
NUM_CLASSES = 2


def names() -> list[str]:
    """All models of our own: the variants, and their literal forms."""
    literal = [name + LITERAL for name in VARIANTS if "form" in VARIANTS[name]]
    return [*VARIANTS, *literal]


def check(chosen: list[str], allowed: list[str] | None = None) -> None:
    """Raises UserError if a name is not allowed or cannot be had here.

    Args:
      chosen: names.
      allowed: `names()` and the outside peer, if None.
    """
    allowed = allowed or [*names(), PEER]
    for name in chosen:
        if name not in allowed:
            raise UserError(f"--models: expected some of {allowed}, found {name!r}")
    if PEER in chosen and importlib.util.find_spec("keras_hub") is None:
        raise UserError(f"--models: {PEER}: expected keras_hub to be installed")


def model_config(name: str, size: str) -> dict:
    """The `model` part of a config; the peer has the baseline's."""
    variant = BASELINE if name == PEER else name.removesuffix(LITERAL)
    config = {**VARIANTS[variant], **SIZES[size]}
    if name.endswith(LITERAL):
        config["form"] = "literal"
    return config


def build(name: str, size: str) -> SequenceClassifier:
    """Makes a model of those `names`, at a size of `configs.common.SIZES`."""
    config = model_config(name, size)
    if name != PEER:
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
