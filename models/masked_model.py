"""Model of hidden tokens: embedding, encoder, and the embedding again."""

import keras
from keras import ops

from models.layers.embedding import PADDING_ID
from models.token_model import TokenModel


@keras.saving.register_keras_serializable("transevolve")
class MaskedModel(TokenModel):
    """Logits of each token of a text, of which the encoder sees a part (Devlin et al.
    2019). Input and output layer share one embedding.

    The vector of a hidden token is 0, plus that of its position where positions have
    vectors. So the model has no weights that a classifier lacks.

    Args:
      vocabulary_size, hidden_dim: see `TokenModel`; there are as many logits.
      encoder: layer from (batch, length, d) and a padding mask to the same shape.
      **kwargs: see `TokenModel`.
    """

    def __init__(self, vocabulary_size, hidden_dim, encoder, **kwargs):
        super().__init__(vocabulary_size, hidden_dim, [encoder], **kwargs)

    def call(self, tokens, hidden, training=None):
        """Logits, (batch, length, vocabulary_size), of (batch, length) token ids.

        Args:
          hidden: bool (batch, length), which of them the encoder does not see.
        """
        x = self.embedding(ops.where(hidden, PADDING_ID, tokens))
        mask = ops.not_equal(tokens, PADDING_ID)
        return self.embedding.logits(self.encoder(x, mask, training=training))
