"""Keras models, written with keras.ops only.

To add an encoder or a decoder, write its layer and name it in `ENCODERS` or
`DECODERS`; to add a form of time-evolving attention, name it in
`transevolve_block.ATTENTIONS`.
"""

from models.classifier import SequenceClassifier
from models.encoder_decoder import EncoderDecoder
from models.seeds import derive_seed
from models.transevolve_decoder import TransEvolveDecoder
from models.transevolve_encoder import TransEvolveEncoder
from models.transformer_decoder import TransformerDecoder
from models.transformer_encoder import TransformerEncoder

ENCODERS = {"transevolve": TransEvolveEncoder, "transformer": TransformerEncoder}
DECODERS = {"transevolve": TransEvolveDecoder, "transformer": TransformerDecoder}


def build_classifier(
    config, vocabulary_size: int, num_classes: int, seed: int = 0
) -> SequenceClassifier:
    """Builds the classifier that the `model` part of a config describes.

    Args:
      config: mapping with `encoder`, a key of `ENCODERS`, `hidden_dim`, and that
        encoder's arguments.
      vocabulary_size: number of token ids, padding (0) included.
      num_classes: number of logits.
      seed: of initial weights, dropout and the random rotations.

    Returns:
      The model, with its weights made.
    """
    arguments = dict(config)
    encoder = ENCODERS[arguments.pop("encoder")]
    hidden_dim = arguments.pop("hidden_dim")
    model = SequenceClassifier(
        vocabulary_size,
        num_classes,
        hidden_dim,
        encoder(**arguments, seed=derive_seed(seed, "encoder"), name="encoder"),
        seed=seed,
        dtype=arguments.get("dtype"),
        name="classifier",
    )
    model.build((None, None))
    return model


def build_encoder_decoder(
    config, vocabulary_size: int, seed: int = 0
) -> EncoderDecoder:
    """Builds the encoder-decoder that the `model` part of a config describes.

    Args:
      config: mapping with `encoder`, a key of `ENCODERS` and `DECODERS`, `hidden_dim`,
        and the arguments that encoder and decoder share.
      vocabulary_size: number of token ids, padding (0) included.
      seed: of initial weights, dropout and the random rotations.

    Returns:
      The model, with its weights made.
    """
    arguments = dict(config)
    kind = arguments.pop("encoder")
    hidden_dim = arguments.pop("hidden_dim")
    model = EncoderDecoder(
        vocabulary_size,
        hidden_dim,
        *(
            parts[kind](**arguments, seed=derive_seed(seed, name), name=name)
            for parts, name in ((ENCODERS, "encoder"), (DECODERS, "decoder"))
        ),
        seed=seed,
        dtype=arguments.get("dtype"),
        name="encoder_decoder",
    )
    model.build((None, None))
    return model
