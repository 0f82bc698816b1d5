"""TransEvolve: attention that evolves with depth (sections 4 to 6)."""

from common.fields import Field, choice, fail, integer, optional
from models.architecture import MOST_LAYERS, Architecture, Variant
from models.fidelity import EXPECTED, is_fidelity
from models.residual_step import FIELDS as STEP_FIELDS
from models.transevolve.decoder import TransEvolveDecoder
from models.transevolve.encoder import (
    ATTENTIONS,
    EVOLUTIONS,
    FEED_FORWARDS,
    TransEvolveEncoder,
)


def check(config):
    """Raises `UserError` if the `model` part of a config does not fit together."""
    if config.hidden_dim % (2 * config.num_heads):
        expected = f"a multiple of twice model.num_heads={config.num_heads}"
        fail("model.hidden_dim", expected, config.hidden_dim)
    if config.feed_forward == "rotation" and config.ffn_dim % 2:
        fail("model.ffn_dim", "an even number", config.ffn_dim)
    if config.get("evolution") and config.attention.name == "literal":
        fail("model.evolution", "none given, since equation 9 has it", "none")
    most = MOST_LAYERS // config.num_blocks
    if config.num_depths > most:
        expected = f"at most {most:,} in each of model.num_blocks={config.num_blocks}"
        fail("model.num_depths", expected, config.num_depths)


def least_size(config) -> int:
    """Weights of the encoder's feed-forwards, or what drawing a rotation takes."""
    if config.feed_forward == "rotation":
        return max(config.hidden_dim, config.ffn_dim) ** 2
    return (
        config.num_blocks * config.num_depths * 2 * config.hidden_dim * config.ffn_dim
    )


def _variant(feed_forward, num_blocks):
    """One block of depth 6, or two of depth 3 (section 7.1)."""
    arguments = {
        "feed_forward": feed_forward,
        "num_blocks": num_blocks,
        "num_depths": 6 // num_blocks,
        "fidelity": "paper",
    }
    return Variant(arguments, in_paper=True)


ARCHITECTURE = Architecture(
    encoder=TransEvolveEncoder,
    decoder=TransEvolveDecoder,
    attentions=ATTENTIONS,
    variants={
        "transevolve-randomff-1": _variant("rotation", 1),
        "transevolve-randomff-2": _variant("rotation", 2),
        "transevolve-fullff-1": _variant("dense", 1),
        "transevolve-fullff-2": _variant("dense", 2),
    },
    fields={
        **STEP_FIELDS,
        "feed_forward": choice(
            "Dense layers (fullFF), or products of rotations (randomFF).",
            *FEED_FORWARDS,
        ),
        "num_blocks": integer("Blocks of encoder and of decoder.", maximum=MOST_LAYERS),
        "num_depths": integer("Depths of a block.", maximum=MOST_LAYERS),
        "evolution": optional(
            choice(
                "Whether the depths of a block share their attention weights, without "
                "T^l; they evolve if unset.",
                *EVOLUTIONS,
            )
        ),
        "fidelity": Field(
            "Whose choices: the paper's or the authors' code's (docs/fidelity.md).",
            EXPECTED,
            is_fidelity,
        ),
    },
    check=check,
    least_size=least_size,
)
