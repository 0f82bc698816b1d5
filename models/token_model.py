"""What the models of token ids share: an embedding, and the layers given."""

import keras
from keras import ops

from models.layers.embedding import PADDING_ID, TokenEmbedding
from models.seeds import derive_seed


class TokenModel(keras.Model):
    """A model of token ids, of which 0 is padding, after the real tokens.

    Class attributes:
      parts: names of the layers that it is given.

    Args:
      vocabulary_size: number of token ids, padding included.
      hidden_dim: d.
      parts: layers of (batch, length, d), in the order of their names.
      positions, max_length: see `TokenEmbedding`.
      seed: of the initial weights outside the parts.
      embedding: a function of a `TokenEmbedding`'s arguments that returns one.
    """

    parts = ("encoder",)

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        parts,
        positions=None,
        max_length=None,
        seed=0,
        embedding=TokenEmbedding,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.positions = positions
        self.max_length = max_length
        self.seed = seed
        self.embedding = embedding(
            vocabulary_size,
            hidden_dim,
            positions=positions,
            max_length=max_length,
            seed=derive_seed(seed, "embedding"),
            dtype=self.dtype_policy.name,
            name="embedding",
        )
        for name, part in zip(self.parts, parts, strict=True):
            setattr(self, name, part)

    def build(self, input_shape, *further_shapes):
        self.embedding.build(input_shape)
        for name in self.parts:
            part = getattr(self, name)
            if not part.built:  # one made from a config is
                part.build((*input_shape, self.hidden_dim))

    def encode(self, tokens, training=None):
        """Encoder output, (batch, length, d), of (batch, length) token ids."""
        mask = ops.not_equal(tokens, PADDING_ID)
        return self.encoder(self.embedding(tokens), mask, training=training)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "positions": self.positions,
            "max_length": self.max_length,
            "seed": self.seed,
            **{
                name: keras.saving.serialize_keras_object(getattr(self, name))
                for name in self.parts
            },
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in cls.parts
        }
        return cls(**{**config, **parts})
