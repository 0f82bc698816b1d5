"""Keras models, written with keras.ops only.

To add an encoder, write its layer and name it in `ENCODERS`; to add a form of
time-evolving attention, name it in `transevolve_encoder.ATTENTIONS`.
"""

from models.classifier import SequenceClassifier
from models.transevolve_encoder import TransEvolveEncoder
from models.transformer_encoder import TransformerEncoder

ENCODERS = {"transevolve": TransEvolveEncoder, "transformer": TransformerEncoder}


def build_classifier(
    config, vocabulary_size: int, num_classes: int, seed: int = 0
) -> SequenceClassifier:
    """Builds the classifier that the `model` part of a config describes.

    Args:
      config: mapping with `encoder`, a key of `ENCODERS`, `hidden_dim`, and that
        encoder's arguments.
      vocabulary_size: number of token ids, padding (0) included.
      num_classes: number of logits.
      seed: of dropout and of the random rotations.

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
        encoder(**arguments, seed=seed, name="encoder"),
        name="classifier",
    )
    model.build((None, None))
    return model
