"""What both forms of time-evolving attention share: weights, projections, heads."""

import keras
from keras import ops

from models.seeds import derive_seed, seeded_dropout
from models.time_features import check_fidelity, time_features

# Added to the scores of keys that must not be seen; exp() of it is exactly zero.
MASKED = -1e9


def split_heads(x, num_heads):
    """Splits the last axis: (batch, length, width) to (batch, heads, length, -1)."""
    batch, length, width = ops.shape(x)
    x = ops.reshape(x, (batch, length, num_heads, width // num_heads))
    # Not transpose: on few rows TensorFlow (oneDNN) is slower at it.
    return ops.einsum("blhs->bhls", x)


def merge_heads(x):
    """Inverse of `split_heads`: (batch, heads, length, size) to (batch, length, -1)."""
    batch, num_heads, length, size = ops.shape(x)
    x = ops.einsum("bhls->blhs", x)
    return ops.reshape(x, (batch, length, num_heads * size))


class TimeEvolvingAttention(keras.layers.Layer):
    """Weights and projections of time-evolving attention (section 4, eq. 6 and 7).

    One layer serves a whole block. Calling it is the block's start: it sees the
    block's input and returns a `state`. `attend(state, depth, values)` is the
    softmax term of equation 9 at one depth. What stands between the two is the
    subclass's choice: `LiteralAttention` evaluates the equation as printed,
    `FactoredAttention` its exact rewriting.

    With d the width, d' = d time dimensions and D = d + d', the augmented kernels
    W'q and W'k of appendix A (both D x D) are held as their row blocks:
    `query_kernel` = Wq (d, D), `query_time_kernel` = W~q (d', D), `key_kernel` = Wk
    (d, D). The fourth, W~k, has no effect on the output and exists in the literal
    form alone. `time_coefficients` (L, d') are the learned w^l of equation 7.

    Args:
      num_heads: H. Must divide the width.
      num_depths: L, how many times the block attends.
      dropout: rate on queries and keys.
      causal: whether query i sees keys 0..i only.
      fidelity: "paper" or "official": the phases of T^l, and the scale of the
        scores, 1/sqrt(d/H) or 1/sqrt(D/H).
      seed: of the initial weights and of the dropout.
    """

    def __init__(
        self,
        num_heads,
        num_depths,
        dropout=0.0,
        causal=False,
        fidelity="paper",
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.num_depths = num_depths
        self.dropout = dropout
        self.causal = causal
        self.fidelity = check_fidelity(fidelity)
        self.seed = seed
        self.query_dropout, self.key_dropout = (
            seeded_dropout(dropout, name, seed, dtype=self.dtype_policy)
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
        width = self.hidden_dim if self.fidelity == "paper" else self.projected_dim
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
        queries = ops.matmul(x, self.query_kernel)
        keys = ops.matmul(context, self.key_kernel)
        queries = self.query_dropout(queries, training=training)
        keys = self.key_dropout(keys, training=training)
        return queries, keys

    def biases(self, keys):
        """b^l = T^l A2 of all depths, (batch, heads, keys, depths).

        The key-side term of equation 9, the only one that acts: docs/attention.md.

        Args:
          keys: K, (batch, keys, D).
        """
        return split_heads(ops.matmul(keys, self.directions()), self.num_heads)

    def directions(self):
        """What K is multiplied by to give b^l: (D, heads * depths)."""
        directions = ops.einsum(
            "lht,htd->dhl",
            self.time_vectors(),
            self.split_time_kernel(self.query_time_kernel),
        )
        return ops.reshape(directions, (self.projected_dim, -1))

    def keys_and_biases(self, context, directions, padding_mask=None):
        """What decoding needs of the keys; in either form, without dropout.

        Args:
          context: (batch, keys, d).
          directions: from `directions`, the same for all tokens.
          padding_mask: (batch, keys), true at real tokens; None if all are real.

        Returns:
          K, (batch, heads, keys, D/H), and b^l, (batch, heads, depths, keys).
        """
        keys = ops.matmul(context, self.key_kernel)
        biases = ops.einsum("bkn->bnk", ops.matmul(keys, directions))
        batch, length, _ = ops.shape(context)
        biases = ops.reshape(biases, (batch, self.num_heads, self.num_depths, length))
        if padding_mask is not None:
            visible = ops.cast(padding_mask, "bool")[:, None, None, :]
            biases = ops.where(visible, biases, MASKED)
        return split_heads(keys, self.num_heads), biases

    def scaled_queries(self, x):
        """Q times the scale, (batch, heads, queries, D/H), of (batch, queries, d)."""
        queries = ops.matmul(x, self.query_kernel) * self.scale
        return split_heads(queries, self.num_heads)

    def probabilities(self, scores, biases, visible=None):
        """softmax(A0 + b^l) at all depths: equation 9 for a few queries.

        Args:
          scores: A0, (batch, heads, queries, keys).
          biases: b^l, (batch, heads, depths, keys).
          visible: (batch, queries, keys), which keys a query sees; None for all.

        Returns:
          (batch, heads, depths, queries, keys).
        """
        if visible is not None:
            scores = ops.where(visible[:, None], scores, MASKED)
        # add, not +: they may differ in dtype
        scores = ops.add(scores[:, :, None], biases[:, :, :, None])
        return ops.softmax(scores, axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_depths": self.num_depths,
            "dropout": self.dropout,
            "causal": self.causal,
            "fidelity": self.fidelity,
            "seed": self.seed,
        }


def scaled_scores(queries, keys, causal):
    """A0: products of (batch, heads, length, size) queries, already scaled, and keys.

    With `causal`, keys after the query get `MASKED` added.
    """
    scores = ops.matmul(queries, ops.swapaxes(keys, 2, 3))
    if causal:
        num_queries, num_keys = ops.shape(scores)[-2:]
        future = ops.arange(num_queries)[:, None] < ops.arange(num_keys)[None, :]
        scores += MASKED * ops.cast(future, scores.dtype)
    return scores
