"""The baseline: a Transformer of TransEvolve's depth, width and heads."""

from common.fields import choice, fail, integer, optional
from models.architecture import MOST_LAYERS, Architecture, Variant
from models.residual_step import FIELDS as STEP_FIELDS
from models.transformer.decoder import TransformerDecoder
from models.transformer.encoder import TransformerEncoder
from models.transformer.layer import ATTENTIONS, NORMS
from models.transformer.shared_attention import SharedAttentionEncoder

# Positions that are a sine and a cosine of each rate; None is the paper's.
OF_SINES = (None, "sinusoidal", "relative-sinusoids")


def check(config):
    """Raises `UserError` if the `model` part of a config does not fit together."""
    if config.hidden_dim % config.num_heads:
        expected = f"a multiple of model.num_heads={config.num_heads}"
        fail("model.hidden_dim", expected, config.hidden_dim)
    if config.hidden_dim % 2 and config.get("positions") in OF_SINES:
        fail("model.hidden_dim", "an even number", config.hidden_dim)
    if (
        config.get("positions") == "rotary"
        and config.hidden_dim // config.num_heads % 2
    ):
        expected = f"an even number for each of model.num_heads={config.num_heads}"
        fail("model.hidden_dim", expected, config.hidden_dim)
    sharing = config.get("sharing")
    if config.get("initialization") and sharing == "weights":
        expected = "none given, where model.sharing makes all layers the first"
        fail("model.initialization", expected, config.initialization)
    if sharing == "attention" and config.attention.name in ATTENTIONS.layers:
        expected = f"another, beside model.attention.name={config.attention.name}"
        fail("model.sharing", expected, sharing)
    if config.get("residuals"):
        for name in ("residual_step", "norm", "sharing"):
            if config.get(name):
                expected = f"none given, beside model.{name}={config[name]}"
                fail("model.residuals", expected, config.residuals)


def least_size(config) -> int:
    """Weights of the encoder's feed-forwards and projections."""
    width = config.hidden_dim
    layers = 1 if config.get("sharing") == "weights" else config.num_layers
    projections = 2 if config.get("sharing") == "attention" else 4
    return layers * (2 * width * config.ffn_dim + projections * width**2)


def encoder(sharing=None, **arguments):
    """Makes the encoder whose layers share what `model.sharing` says."""
    if sharing == "attention":
        return SharedAttentionEncoder(**arguments)
    return TransformerEncoder(sharing=sharing, **arguments)


ARCHITECTURE = Architecture(
    encoder=encoder,
    decoder=TransformerDecoder,
    attentions=ATTENTIONS,
    variants={"transformer": Variant({"num_layers": 6}, in_paper=True)},
    fields={
        **STEP_FIELDS,
        "num_layers": integer("Layers of encoder and of decoder.", maximum=MOST_LAYERS),
        "norm": optional(
            choice("Where a sublayer's LayerNorm is; before it if unset.", *NORMS)
        ),
        "sharing": optional(
            choice(
                "What all layers share: weights, or an encoder's layers its attention.",
                *("weights", "attention"),
            )
        ),
        "residuals": optional(
            choice("How an encoder's layers add up.", "reversible"),
        ),
        "initialization": optional(
            choice(
                "How kernels start; depth-scaled: 1/sqrt(l) as large in layer l.",
                "depth-scaled",
            )
        ),
    },
    check=check,
    least_size=least_size,
)
