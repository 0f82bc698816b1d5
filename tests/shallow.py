"""Few variants, of few layers: layers are traced one by one, which takes time."""

import pytest

from models import attention_kind, base_of, variant_config, variants

# At least two: what one layer hands on to the next is there.
LAYERS = 2


def shallow(config: dict) -> dict:
    """The `model` part of a config, with few layers or depths of a block."""
    fields = {"num_layers", "num_depths"} & config.keys()
    return {**config, **{name: min(config[name], LAYERS) for name in fields}}


def shallow_variant(name: str) -> dict:
    """As `models.variant_config`; one block where only the attention is special."""
    config = shallow(variant_config(name))
    if name != base_of(name) and "num_blocks" in config:
        config["num_blocks"] = 1
    return config


def every_mechanism() -> list[str]:
    """The last variant of each architecture, with each of its mechanisms."""
    found = variants()
    last = {variant_config(name)["architecture"]: base_of(name) for name in found}
    return [name for name in found if base_of(name) in last.values()]


# One for each way in which the Transformer reads an operator: by a softmax's own rows,
# divided, undivided, without queries and keys, and not at all.
OF_TRANSFORMER = ("softmax", "local", "linear", "linformer", "synthesizer", "none")


def is_usual(architecture: str, attention: dict, kind) -> bool:
    """Whether a check runs on an attention each time, and not in `long` tests alone.

    It does on each mechanism's first variant in TransEvolve, and on some in the
    Transformer.
    """
    hyperparameters = next(iter(kind.variants.values()))
    if any(attention.get(key) != value for key, value in hyperparameters.items()):
        return False
    return architecture != "transformer" or attention["name"] in OF_TRANSFORMER


def _is_usual(name):
    config = variant_config(name)
    kind = attention_kind(config)
    if kind is None:
        return True
    return is_usual(config["architecture"], config["attention"], kind)


def with_marks(names) -> list:
    """The variants as parameters, `long` but for the usual ones."""
    return [
        pytest.param(name, marks=() if _is_usual(name) else pytest.mark.long)
        for name in names
    ]


def representatives() -> list[str]:
    """Each variant with its architecture's first mechanism, and the usual mechanisms of
    the last variant."""
    usual = [name for name in every_mechanism() if _is_usual(name)]
    return [name for name in variants() if name == base_of(name) or name in usual]
