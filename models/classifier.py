"""Sequence classifier: embedding, encoder, mean over real tokens, logits."""

import keras
from keras import ops

from models.layers.dense import seeded_dense
from models.layers.embedding import PADDING_ID, TokenEmbedding
from models.layers.normalization import LayerNormalization
from models.seeds import derive_seed


@keras.saving.register_keras_serializable("transevolve")
class SequenceClassifier(keras.Model):
    """The encoder-only model of section 6.

    Args:
      vocabulary_size: number of token ids, padding (0) included.
      num_classes: number of logits.
      hidden_dim: d.
      encoder: layer from (batch, length, d) and a padding mask to the same shape.
      positions, max_length: see `TokenEmbedding`.
      seed: of the initial weights outside the encoder.
    """

    def __init__(
        self,
        vocabulary_size,
        num_classes,
        hidden_dim,
        encoder,
        positions=None,
        max_length=None,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.num_classes = num_classes
        self.hidden_dim = hidden_dim
        self.positions = positions
        self.max_length = max_length
        self.seed = seed
        dtype = {"dtype": self.dtype_policy}
        self.embedding = TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            positions,
            max_length,
            seed=derive_seed(seed, "embedding"),
            name="embedding",
            **dtype,
        )
        self.encoder = encoder
        self.norm = LayerNormalization(name="norm", **dtype)
        self.logits = seeded_dense(num_classes, "logits", seed, **dtype)

    def build(self, input_shape):
        self.embedding.build(input_shape)
        if not self.encoder.built:  # one made from a config is
            self.encoder.build((*input_shape, self.hidden_dim))
        self.norm.build((input_shape[0], self.hidden_dim))
        self.logits.build((input_shape[0], self.hidden_dim))

    def encode(self, tokens, training=None):
        """Encoder output, (batch, length, d), of (batch, length) token ids."""
        mask = ops.not_equal(tokens, PADDING_ID)
        return self.encoder(self.embedding(tokens), mask, training=training)

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
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "num_classes": self.num_classes,
            "hidden_dim": self.hidden_dim,
            "positions": self.positions,
            "max_length": self.max_length,
            "seed": self.seed,
            "encoder": keras.saving.serialize_keras_object(self.encoder),
        }

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder=encoder, **config)
