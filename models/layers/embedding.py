"""Token embedding with sinusoidal positions."""

import keras
import numpy as np
from keras import ops

from models.seeds import derive_seed

PADDING_ID = 0


def sinusoidal_positions(length, hidden_dim, dtype="float32"):
    """Position vectors: a sine half, then a cosine half.

    Timescales grow geometrically from 1 to 10,000 (Vaswani et al. 2017, in the
    tensor2tensor order that the authors use).

    Args:
      length: number of positions, an int or a scalar tensor.
      hidden_dim: width, even.

    Returns:
      (length, hidden_dim).
    """
    return _position_vectors(ops.arange(length), hidden_dim, dtype)


def _position_vectors(positions, hidden_dim, dtype):
    half = hidden_dim // 2
    rates = np.exp(-np.log(1e4) * np.arange(half) / max(half - 1, 1))
    positions = ops.cast(positions, "float32")[:, None]
    angles = positions * ops.convert_to_tensor(rates.astype("float32"))
    table = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=1)
    return ops.cast(table, dtype)


@keras.saving.register_keras_serializable("transevolve")
class TokenEmbedding(keras.layers.Layer):
    """sqrt(d) * table[token], zero at padding, plus sinusoidal positions.

    Args:
      vocabulary_size: number of ids, padding (0) included.
      hidden_dim: d, even.
      seed: of the initial table.
    """

    def __init__(self, vocabulary_size, hidden_dim, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.seed = seed

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.hidden_dim),
            initializer=keras.initializers.RandomNormal(
                stddev=self.hidden_dim**-0.5, seed=derive_seed(self.seed, "embeddings")
            ),
        )

    def call(self, tokens):
        """Embeds (batch, length) ids to (batch, length, hidden_dim)."""
        vectors = self._vectors(tokens)
        length = ops.shape(tokens)[1]
        return vectors + sinusoidal_positions(length, self.hidden_dim, vectors.dtype)

    def at_position(self, tokens, position):
        """Embeds (batch, beams) ids that all stand at one position, a scalar."""
        vectors = self._vectors(tokens)
        positions = ops.reshape(position, (1,))
        return vectors + _position_vectors(positions, self.hidden_dim, vectors.dtype)

    def _vectors(self, tokens):
        vectors = ops.take(self.embeddings, tokens, axis=0)
        vectors = ops.cast(vectors, self.compute_dtype)
        real = ops.cast(ops.not_equal(tokens, PADDING_ID), vectors.dtype)
        return vectors * real[:, :, None] * self.hidden_dim**0.5

    def logits(self, x):
        """The table as output layer: (batch, n, d) to (batch, n, vocabulary_size)."""
        return ops.matmul(x, ops.transpose(self.embeddings))

    def logits_at_position(self, x):
        """`logits` of few rows, (batch, beams, d): there this order is the faster."""
        return ops.einsum("vd,bnd->bnv", self.embeddings, x)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.hidden_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "seed": self.seed,
        }
