"""The Transformer's attention: queries, keys and values of its own, read once."""

import keras
from keras import ops

from models.attention.attention import Attention
from models.layers.dense import seeded_dense


@keras.saving.register_keras_serializable("transevolve")
class ProjectedAttention(Attention):
    """softmax(Q K^T / sqrt(d/H)) V, equation 1 of the paper, or another operator.

    Projections of one input are one product; none has a bias, as in TransEvolve. The
    values are projected too: those that the model hands over are left aside. Scores are
    scaled by 1/sqrt(d/H) where they stand for a softmax's.

    Args:
      kernel_scale: of the projections, see `seeded_dense`.

    See `Attention` for the other arguments and the methods.
    """

    def __init__(self, *, kernel_scale=1.0, **kwargs):
        super().__init__(**kwargs)
        self.kernel_scale = kernel_scale

    def build(self, x_shape, context_shape=None):
        self.hidden_dim = x_shape[-1]
        if self.hidden_dim % self.num_heads:
            raise ValueError(
                f"width {self.hidden_dim} must be a multiple of "
                f"num_heads={self.num_heads}"
            )
        names, layers = self.projections, ()
        if self.use == "cross":
            self.query = self._projection("query", 1)
            self.key_value = self._projection("key_value", 2)
            layers = (self.query, self.key_value)
        elif names:
            self.query_key_value = self._projection("_".join(names), len(names))
            layers = (self.query_key_value,)
        for layer in layers:
            layer.build(x_shape)
        self.build_operator(self.head_size)

    @property
    def projections(self):
        """Names of what is projected."""
        return (*self.operator.projections, "value")

    def _projection(self, name, count):
        options = {"use_bias": False, "dtype": self.dtype_policy}
        return seeded_dense(
            count * self.hidden_dim, name, self.seed, self.kernel_scale, **options
        )

    @property
    def scale(self):
        """Factor on the products of queries and keys."""
        return self.head_size**-0.5 if self.operator.is_softmax else 1.0

    @property
    def num_biased_reads(self):
        """0: the one read has no b of its own."""
        return 0

    def project_queries(self, x, training=None):
        """Q of cross-attention, (batch, n, d)."""
        return self.query(x)

    def project_keys(self, context, training=None):
        """K and V of cross-attention, (batch, m, d) each."""
        return self._parts(self.key_value(context))

    def project(self, x, context, training=None):
        """Queries, keys and values, heads merged; None for what is not projected."""
        if self.use == "cross":
            return super().project(x, context, training)
        queries, keys, values = self._projected(x)
        if context is not x:
            _, keys, values = self._projected(context)
        return queries, keys, values

    def _projected(self, x):
        """Queries, keys and values of one input."""
        if not self.projections:
            return None, None, None
        parts = self._parts(self.query_key_value(x))
        projected = dict(zip(self.projections, parts, strict=True))
        return [projected.get(name) for name in ("query", "key", "value")]

    def _parts(self, x):
        return ops.split(x, x.shape[-1] // self.hidden_dim, axis=-1)
