"""Token embedding with positions."""

import keras
import numpy as np
from keras import ops

from models.seeds import derive_seed

PADDING_ID = 0
# These are in the attentions: nothing is added to embeddings.
RELATIVE = ("relative-bias", "relative-keys", "relative-sinusoids")
IN_ATTENTION = ("rotary", *RELATIVE)
POSITIONS = ("sinusoidal", "learned", *IN_ATTENTION, "none")


def sinusoidal_positions(positions, hidden_dim, dtype="float32"):
    """Vectors of positions: a sine half, then a cosine half.

    Timescales grow geometrically from 1 to 10,000 (Vaswani et al. 2017, in the
    tensor2tensor order that the authors use).

    Args:
      positions: (n,), numbers from 0.
      hidden_dim: width, even.

    Returns:
      (n, hidden_dim).
    """
    half = hidden_dim // 2
    rates = np.exp(-np.log(1e4) * np.arange(half) / max(half - 1, 1))
    positions = ops.cast(positions, "float32")[:, None]
    angles = positions * ops.convert_to_tensor(rates.astype("float32"))
    table = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=1)
    return ops.cast(table, dtype)


@keras.saving.register_keras_serializable("transevolve")
class TokenEmbedding(keras.layers.Layer):
    """sqrt(d) * table[token], zero at padding, plus a vector for its position.

    Args:
      vocabulary_size: number of ids, padding (0) included.
      hidden_dim: d, even.
      positions: of `POSITIONS`; None for the paper's, sinusoidal.
      max_length: how many positions have a learned vector; those after them have the
        last one's.
      seed: of the initial tables.

    Raises:
      ValueError: if positions are to be learned, and `max_length` is None.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        positions=None,
        max_length=None,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if positions == "learned" and max_length is None:
            raise ValueError("learned positions need a max_length, got None")
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.positions = positions
        self.max_length = max_length
        self.seed = seed

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.hidden_dim),
            initializer=keras.initializers.RandomNormal(
                stddev=self.hidden_dim**-0.5, seed=derive_seed(self.seed, "embeddings")
            ),
        )
        if self.positions == "learned":
            # As large as a sine and a cosine are.
            self.position_embeddings = self.add_weight(
                name="position_embeddings",
                shape=(self.max_length, self.hidden_dim),
                initializer=keras.initializers.RandomNormal(
                    stddev=0.5**0.5, seed=derive_seed(self.seed, "position_embeddings")
                ),
            )

    def call(self, tokens):
        """Embeds (batch, length) ids to (batch, length, hidden_dim)."""
        return self._at(self._vectors(tokens), ops.arange(ops.shape(tokens)[1]))

    def at_position(self, tokens, position):
        """Embeds (batch, beams) ids that all stand at one position, a scalar."""
        return self._at(self._vectors(tokens), ops.reshape(position, (1,)))

    def _at(self, vectors, positions):
        if self.positions in (*IN_ATTENTION, "none"):
            return vectors
        if self.positions == "learned":
            places = ops.minimum(positions, self.max_length - 1)
            return vectors + ops.cast(
                ops.take(self.position_embeddings, places, axis=0), vectors.dtype
            )
        return vectors + sinusoidal_positions(positions, self.hidden_dim, vectors.dtype)

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
        # PyTorch's einsum mixes no types.
        x = ops.cast(x, self.embeddings.dtype)
        return ops.einsum("vd,bnd->bnv", self.embeddings, x)
