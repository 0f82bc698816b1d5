"""Variants of few layers: layers are traced one by one, which is what takes time."""

from models import variant_config

# At least two: what one layer hands on to the next is there.
LAYERS = 2


def shallow(config: dict) -> dict:
    """The `model` part of a config, with few layers or depths of a block."""
    fields = {"num_layers", "num_depths"} & config.keys()
    return {**config, **{name: min(config[name], LAYERS) for name in fields}}


def shallow_variant(name: str) -> dict:
    """As `models.variant_config`."""
    return shallow(variant_config(name))
