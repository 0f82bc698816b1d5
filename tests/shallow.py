"""Few variants, of few layers: layers are traced one by one, which takes time."""

from models import base_of, variant_config, variants

# At least two: what one layer hands on to the next is there.
LAYERS = 2


def shallow(config: dict) -> dict:
    """The `model` part of a config, with few layers or depths of a block."""
    fields = {"num_layers", "num_depths"} & config.keys()
    return {**config, **{name: min(config[name], LAYERS) for name in fields}}


def shallow_variant(name: str) -> dict:
    """As `models.variant_config`."""
    return shallow(variant_config(name))


def every_mechanism() -> list[str]:
    """The last variant of each architecture, with each of its mechanisms."""
    found = variants()
    last = {variant_config(name)["architecture"]: base_of(name) for name in found}
    return [name for name in found if base_of(name) in last.values()]


def representatives() -> list[str]:
    """Likewise, and each other variant with its architecture's first mechanism."""
    chosen = every_mechanism()
    return [name for name in variants() if name == base_of(name) or name in chosen]
