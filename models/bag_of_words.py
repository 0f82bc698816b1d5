"""The mean of a text's word vectors: what a classifier reaches without any order."""

import keras

from models.architecture import Architecture, Variant


@keras.saving.register_keras_serializable("transevolve")
class BagOfWordsEncoder(keras.layers.Layer):
    """Gives each token its own vector, so a classifier sees the mean of all vectors.

    But for the LayerNorm of the classifier that is a linear model of the counts of
    tokens over the text's length (Joulin et al. 2017).

    Args:
      num_heads, ffn_dim, dropout, seed: of other encoders. They change nothing here.
      name, dtype, trainable: Keras's.
    """

    def __init__(self, num_heads=1, ffn_dim=1, dropout=0.0, seed=0, **kwargs):
        super().__init__(**kwargs)

    def call(self, x, padding_mask=None, training=None):
        """The vectors (batch, length, width) as they are."""
        return x


BAG_OF_WORDS = "bag-of-words"
ARCHITECTURE = Architecture(
    encoder=BagOfWordsEncoder,
    decoder=None,
    variants={BAG_OF_WORDS: Variant({"positions": "none"})},
)
