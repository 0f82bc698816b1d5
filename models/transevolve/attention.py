"""Time-evolving attention: one operator a block, read at each depth with w^l."""

import keras
from keras import ops

from models.attention.attention import Attention
from models.attention.heads import split_heads
from models.layers.dense import project
from models.seeds import derive_seed, seeded_dropout
from models.transevolve.time_evolution import time_features


@keras.saving.register_keras_serializable("transevolve")
class TimeEvolvingAttention(Attention):
    """Equation 9 without what cancels: the same outputs and gradients.

    The softmax over keys ignores what is constant along keys. So of the three evolution
    terms of equation 9 only the key-side one, b^l = T^l A2, acts, and depth l reads the
    block's operator with the weights w^l = exp(b^l): docs/attention.md.

    With d the width, d' = d time dimensions and D = d + d', the augmented kernels
    W'q and W'k of appendix A (both D x D) are held as their row blocks:
    `query_kernel` = Wq (d, D), `query_time_kernel` = W~q (d', D), `key_kernel` = Wk
    (d, D). The fourth, W~k, has no effect on the output and exists in the literal
    form alone. `time_coefficients` (L, d') are the learned w^l of equation 7.

    Args:
      evolves: whether b^l acts. Without it all depths of a block share their attention
        weights, and there are no weights of time.
      dropout: on queries and keys.
      fidelity: see `models.fidelity`; of it the phases of T^l, and the scale of the
        scores, 1/sqrt(d/H) or, in the official code, 1/sqrt(D/H).

    See `Attention` for the others.
    """

    def __init__(self, *, evolves=True, **kwargs):
        super().__init__(**kwargs)
        self.evolves = evolves
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
        if "query" in self.operator.projections:
            self.query_kernel = self._add_kernel("query_kernel", limit)
        if self.evolves:
            self.query_time_kernel = self._add_kernel("query_time_kernel", limit)
        self.key_kernel = self._add_kernel("key_kernel", limit)
        if self.evolves:
            self.time_coefficients = self.add_weight(
                name="time_coefficients",
                shape=(self.num_depths, width),
                initializer=self._uniform("time_coefficients", (6 / width) ** 0.5),
            )
        self.features = time_features(
            width, self.num_depths, self.fidelity, self.offsets
        )
        self.query_dropout.build(x_shape)
        self.key_dropout.build(x_shape)
        self.build_operator(self.projected_dim // self.num_heads)

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
        """T^l of equation 7 split in heads, of all reads: (reads, num_heads, d'/H)."""
        coefficients = self.time_coefficients
        if len(self.offsets) > 1:
            coefficients = ops.repeat(coefficients, len(self.offsets), axis=0)
        vectors = coefficients * ops.cast(self.features, self.compute_dtype)
        return ops.reshape(vectors, (self.num_reads, self.num_heads, -1))

    def split_time_kernel(self, kernel):
        """Splits the time dimensions of W~: (d', D) to (num_heads, d'/H, D)."""
        return ops.reshape(kernel, (self.num_heads, -1, self.projected_dim))

    def constants(self):
        """What K is multiplied by to give b^l of all reads: (D, heads * reads)."""
        if not self.evolves:
            return ()
        directions = ops.einsum(
            "lht,htd->dhl",
            self.time_vectors(),
            self.split_time_kernel(self.query_time_kernel),
        )
        return ops.reshape(directions, (self.projected_dim, -1))

    def project_queries(self, x, training=None):
        """Q = X Wq, (batch, n, D), after dropout; None if no operator needs it."""
        if "query" not in self.operator.projections:
            return None
        return self.query_dropout(project(x, self.query_kernel), training=training)

    def project_keys(self, context, training=None):
        """K = C Wk, (batch, m, D), after dropout; each depth has its own values."""
        keys = self.key_dropout(project(context, self.key_kernel), training=training)
        return keys, None

    def biases(self, keys, context, constants):
        """b^l = T^l A2 of all reads, float32 (batch, heads, m, reads).

        The key-side term of equation 9, the only one that acts: docs/attention.md.

        Args:
          keys: K, (batch, m, D).
          constants: of `constants`.
        """
        if not self.evolves:
            batch, length, _ = ops.shape(keys)
            return ops.zeros((batch, self.num_heads, length, self.num_reads))
        biases = split_heads(project(keys, constants), self.num_heads)
        return ops.cast(biases, "float32")
