"""The models that a benchmark can compare, by name."""

import keras

from configs.shared import BASE, SMALL
from models import (
    base_of,
    build_classifier,
    variant_config,
    variants,
)
from models.classifier import SequenceClassifier
from models.products import Product

BASELINE = "transformer"
LITERAL, UNATTENDED = "-literal", "-none"
# Transformers of other libraries, and the package that each needs.
KERAS_HUB, PYTORCH = "keras-hub", "pytorch"
LIBRARIES = {KERAS_HUB: "keras_hub", PYTORCH: "torch"}
# The paper's, without a dtype: the policy that is set decides on that.
SIZES = {
    name: {field: value for field, value in size.items() if field != "dtype"}
    for name, size in (("small", SMALL), ("base", BASE))
}
# Bytes, two classes: the task of the paper's timings.
VOCABULARY_SIZE = 257
NUM_CLASSES = 2
# Of encoder-decoders.
NUM_SUBWORDS = 8_000


def split(name: str) -> tuple[str, str]:
    """The folder and the model of CHECKOUT:MODEL; no folder for a model from here."""
    folder, _, model = name.rpartition(":")
    return folder, model


def compared_with(name: str) -> dict[str, str]:
    """The models that a model is compared with, by the field of the ratio of speeds."""
    baselines = {"ratio_to_transformer": BASELINE}
    folder, variant = split(name)
    if folder:
        return {**baselines, "ratio_to_here": variant}
    if name in variants():
        # The lower bound is what the variant takes without attention.
        for bound, suffix in (("literal", LITERAL), ("lower_bound", UNATTENDED)):
            if name != base_of(name) + suffix:
                baselines[f"ratio_to_{bound}"] = base_of(name) + suffix
    return baselines


def model_config(name: str, size: str, causal: bool = False) -> dict:
    """The `model` part of a config; a library has the baseline's."""
    return {
        **variant_config(BASELINE if name in LIBRARIES else name),
        **SIZES[size],
        **({"use": "causal"} if causal else {}),
    }


def build(
    name: str, size: str, causal: bool = False, length: int | None = None
) -> SequenceClassifier:
    """Makes a model of those names, at a size of `SIZES`, for texts of a length."""
    config = model_config(name, size, causal)
    if name != KERAS_HUB:
        return build_classifier(config, VOCABULARY_SIZE, NUM_CLASSES, max_length=length)
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


def products(model, batch_size: int, length: int) -> list[Product]:
    """The matrix products that a classifier's encoder states, if it does."""
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
