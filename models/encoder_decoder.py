"""Sequence to sequence: one embedding, encoder, decoder, and the embedding again."""

import keras
from keras import ops

from models.decoding_model import DecodingModel
from models.layers.embedding import PADDING_ID


@keras.saving.register_keras_serializable("transevolve")
class EncoderDecoder(DecodingModel):
    """The encoder-decoder model of section 6.

    Source, target and output layer share one embedding. What starts a target is the
    caller's choice. `step` is given the `source_cache`.

    Args:
      vocabulary_size, hidden_dim: see `TokenModel`; there are as many logits.
      encoder: layer from (batch, source, d) and a padding mask to the same shape.
      decoder: layer with the methods of `models.stack.DecoderStack`.
      **kwargs: see `TokenModel`.
    """

    parts = ("encoder", "decoder")

    def __init__(self, vocabulary_size, hidden_dim, encoder, decoder, **kwargs):
        super().__init__(vocabulary_size, hidden_dim, [encoder, decoder], **kwargs)

    def call(self, source, target, training=None):
        """Logits of each next token.

        Args:
          source: int32 (batch, source length).
          target: int32 (batch, target length): a start token, then target tokens.

        Returns:
          (batch, target length, vocabulary_size).
        """
        encoded = self.encode(source, training=training)
        decoded = self.decoder(
            self.embedding(target),
            encoded,
            ops.not_equal(target, PADDING_ID),
            ops.not_equal(source, PADDING_ID),
            training=training,
        )
        return self.embedding.logits(decoded)

    def source_cache(self, source):
        """What `step` needs of (batch, length) source ids; computed once."""
        return self.decoder.source_cache(
            self.encode(source, training=False), ops.not_equal(source, PADDING_ID)
        )
