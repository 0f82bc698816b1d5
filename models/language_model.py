"""Language model: embedding, causal encoder, and the embedding again."""

import keras
from keras import ops

from models.layers.embedding import PADDING_ID
from models.token_model import DecodingModel


@keras.saving.register_keras_serializable("transevolve")
class LanguageModel(DecodingModel):
    """Logits of each next token of a text, by an encoder whose tokens see none after
    them. Input and output layer share one embedding.

    `step` is given the `constants`.

    Args:
      vocabulary_size, hidden_dim: see `TokenModel`; there are as many logits.
      encoder: causal layer with the methods of `models.stack.EncoderStack`.
      **kwargs: see `TokenModel`.
    """

    def __init__(self, vocabulary_size, hidden_dim, encoder, **kwargs):
        super().__init__(vocabulary_size, hidden_dim, [encoder], **kwargs)

    def call(self, tokens, training=None, memory=None):
        """Logits of the token after each of (batch, length) ids.

        Args:
          memory: what the text before has left, as from `empty_memory`; None where none
            is kept.

        Returns:
          (batch, length, vocabulary_size). Where there is a memory, that for the text
          after this one, too.
        """
        if memory is None:
            return self.embedding.logits(self.encode(tokens, training))
        x, mask = self.embedding(tokens), ops.not_equal(tokens, PADDING_ID)
        encoded, memory = self.encoder(x, mask, training=training, memory=memory)
        return self.embedding.logits(encoded), memory

    def empty_memory(self, batch_size, span):
        """What `call` takes and gives: nothing yet.

        Args:
          batch_size: texts.
          span: of positions that are remembered; states have no such limit, see
            `Operator.memory`.
        """
        return self.encoder.empty_memory(batch_size, span)

    def constants(self):
        """What `step` needs that no token changes."""
        return self.encoder.constants()
