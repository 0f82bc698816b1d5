"""Sequence classifier: embedding, encoder, mean over real tokens, logits."""

import keras
from keras import ops

from models.layers.dense import seeded_dense
from models.layers.embedding import PADDING_ID
from models.layers.normalization import LayerNormalization
from models.token_model import TokenModel


@keras.saving.register_keras_serializable("transevolve")
class SequenceClassifier(TokenModel):
    """The encoder-only model of section 6.

    Args:
      vocabulary_size, hidden_dim: see `TokenModel`.
      num_classes: number of logits.
      encoder: layer from (batch, length, d) and a padding mask to the same shape.
      **kwargs: see `TokenModel`.
    """

    def __init__(self, vocabulary_size, num_classes, hidden_dim, encoder, **kwargs):
        super().__init__(vocabulary_size, hidden_dim, [encoder], **kwargs)
        self.num_classes = num_classes
        dtype = {"dtype": self.dtype_policy}
        self.norm = LayerNormalization(name="norm", **dtype)
        self.logits = seeded_dense(num_classes, "logits", self.seed, **dtype)

    def build(self, input_shape):
        super().build(input_shape)
        self.norm.build((input_shape[0], self.hidden_dim))
        self.logits.build((input_shape[0], self.hidden_dim))

    def call(self, tokens, training=None):
        """Logits, (batch, num_classes), of (batch, length) token ids.

        The mean is over real tokens only; a row of nothing but padding has mean 0.
        """
        encoded = self.encode(tokens, training=training)
        real = ops.cast(ops.not_equal(tokens, PADDING_ID), "float32")
        # bfloat16 cannot count beyond 256.
        total = ops.einsum("bnd,bn->bd", ops.cast(encoded, "float32"), real)
        count = ops.maximum(ops.sum(real, axis=1, keepdims=True), 1)
        return self.logits(self.norm(total / count))

    def get_config(self):
        return {**super().get_config(), "num_classes": self.num_classes}
