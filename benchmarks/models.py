"""The models that a benchmark can compare, by name."""

from common.errors import check_known
from configs.shared import BASE, SMALL
from models import (
    BASELINE,
    base_of,
    build_classifier,
    can_model_language,
    variant_config,
    variants,
)
from models.classifier import SequenceClassifier

LITERAL, UNATTENDED = "-literal", "-none"
# The Transformer of another library.
PYTORCH = "pytorch"
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


def check_language_models(names: list[str]) -> None:
    """Raises `UserError` unless all are variants that can model language."""
    able = [name for name in variants() if can_model_language(variant_config(name))]
    check_known("models", names, able)


def model_config(name: str, size: str, causal: bool = False) -> dict:
    """The `model` part of a config; PyTorch has the baseline's."""
    return {
        **variant_config(BASELINE if name == PYTORCH else name),
        **SIZES[size],
        **({"use": "causal"} if causal else {}),
    }


def build(
    name: str, size: str, causal: bool = False, length: int | None = None
) -> SequenceClassifier:
    """Makes a model of those names, at a size of `SIZES`, for texts of a length."""
    config = model_config(name, size, causal)
    return build_classifier(config, VOCABULARY_SIZE, NUM_CLASSES, max_length=length)
