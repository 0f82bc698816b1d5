"""What every form of time-evolving attention shares: weights, projections, b^l."""

import keras
from keras import ops

from models.attention.heads import split_heads
from models.attention.mechanism import Attention
from models.attention.time_features import time_features
from models.dense import linear
from models.products import with_gradients
from models.seeds import derive_seed, seeded_dropout


class TimeEvolvingAttention(Attention):
    """Weights and projections of time-evolving attention (section 4, eq. 6 and 7).

    How the queries, the keys and the key biases b^l become what each depth attends is
    the subclass's choice, in parallel and recurrently.

    With d the width, d' = d time dimensions and D = d + d', the augmented kernels
    W'q and W'k of appendix A (both D x D) are held as their row blocks:
    `query_kernel` = Wq (d, D), `query_time_kernel` = W~q (d', D), `key_kernel` = Wk
    (d, D). The fourth, W~k, has no effect on the output and exists in the literal
    form alone. `time_coefficients` (L, d') are the learned w^l of equation 7.

    Args:
      num_heads, num_depths, use, seed: see `Attention`.
      dropout: on queries and keys.
      fidelity: see `models.fidelity`; of it the phases of T^l, and the scale of the
        scores, 1/sqrt(d/H) or, in the official code, 1/sqrt(D/H).
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.query_dropout, self.key_dropout = (
            seeded_dropout(self.dropout, name, self.seed, dtype=self.dtype_policy)
            for name in ("query_dropout", "key_dropout")
        )

    def build(self, x_shape, context_shape=None):
        width = x_shape[-1]
        if width % (2 * self.num_heads):
            raise ValueError(
                f"width {width} must be a multiple of twice num_heads={self.num_heads}"
            )
        self.hidden_dim = width
        self.projected_dim = 2 * width
        # The authors initialise W'q and W'k as whole (D, D) matrices.
        limit = (3 / self.projected_dim) ** 0.5
        self.query_kernel = self._add_kernel("query_kernel", limit)
        self.query_time_kernel = self._add_kernel("query_time_kernel", limit)
        self.key_kernel = self._add_kernel("key_kernel", limit)
        self.time_coefficients = self.add_weight(
            name="time_coefficients",
            shape=(self.num_depths, width),
            initializer=self._uniform("time_coefficients", (6 / width) ** 0.5),
        )
        self.features = time_features(width, self.num_depths, self.fidelity)
        self.query_dropout.build(x_shape)
        self.key_dropout.build(x_shape)

    def _uniform(self, name, limit):
        seed = derive_seed(self.seed, name)
        return keras.initializers.RandomUniform(-limit, limit, seed)

    def _add_kernel(self, name, limit):
        return self.add_weight(
            name=name,
            shape=(self.hidden_dim, self.projected_dim),
            initializer=self._uniform(name, limit),
        )

    @property
    def scale(self):
        """Factor on the scores A0."""
        official = "score_scale" in self.official_choices
        width = self.projected_dim if official else self.hidden_dim
        return (width / self.num_heads) ** -0.5

    def time_vectors(self):
        """T^l of equation 7 split in heads: (num_depths, num_heads, d'/H)."""
        vectors = self.time_coefficients * ops.cast(self.features, self.compute_dtype)
        return ops.reshape(vectors, (self.num_depths, self.num_heads, -1))

    def split_time_kernel(self, kernel):
        """Splits the time dimensions of W~: (d', D) to (num_heads, d'/H, D)."""
        return ops.reshape(kernel, (self.num_heads, -1, self.projected_dim))

    def project(self, x, context, training=None):
        """Q = X Wq and K = C Wk, each (batch, length, D), after dropout."""
        queries = linear(x, self.query_kernel)
        keys = linear(context, self.key_kernel)
        queries = self.query_dropout(queries, training=training)
        keys = self.key_dropout(keys, training=training)
        return queries, keys

    def biases(self, keys):
        """b^l = T^l A2 of all depths, (batch, heads, keys, depths).

        The key-side term of equation 9, the only one that acts: docs/attention.md.

        Args:
          keys: K, (batch, keys, D).
        """
        return split_heads(linear(keys, self.directions()), self.num_heads)

    def directions(self):
        """What K is multiplied by to give b^l: (D, heads * depths)."""
        directions = ops.einsum(
            "lht,htd->dhl",
            self.time_vectors(),
            self.split_time_kernel(self.query_time_kernel),
        )
        return ops.reshape(directions, (self.projected_dim, -1))

    def constants(self):
        """The `directions` that give b^l."""
        return self.directions()

    def products(self, batch_size, length):
        """Those of the block's start: Q, K and Q K^T. A subclass adds its own."""
        units, size = batch_size * self.num_heads, self.projected_dim // self.num_heads
        projection = (batch_size * length, self.hidden_dim, self.projected_dim)
        return [
            *with_gradients("query, key", 2, 1, projection),
            *with_gradients("Q K^T", 1, units, (length, size, length), "right"),
        ]
