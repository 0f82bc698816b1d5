"""Random feature attention whose sums forget, by a gate at each position."""

from keras import initializers, ops

from models.attention.causal_chunks import chunks
from models.attention.heads import (
    MASKED,
    after_earlier,
    is_future,
    split_heads,
    transpose,
)
from models.attention.rfa import RfaOperator
from models.attention.signed_sums import shares
from models.layers.dense import project
from models.seeds import derive_seed

# Where a gate's argument stops. Beyond, float32 would not tell the gate from 0 or 1,
# and sums of its logarithms over a chunk would lose digits.
STEEPEST = 30.0


class GatedRfaOperator(RfaOperator):
    """K_ij = phi(q_i) . phi(k_j) D_ij of gates g (Peng et al. 2021, equation 7).

    Its sums S, and z likewise, pass a gate at each position of the context x:

        S_j = g_j S_(j-1) + (1 - g_j) phi(k_j) v_j^T,      g_j = sigmoid(w_g x_j + b_g)

    A head has one gate a position. With c_i the sum of log g_t over t <= i,

        D_ij = (1 - g_j) prod_(j < t <= i) g_t = (1 - g_j) exp(c_i - c_j)

    for j <= i, and else 0. It is also the D of the bound of `RfaOperator`. At padding g
    is 1, and nothing is forgotten. c is summed within chunks, and no exponent is
    positive.
    """

    uses = ("causal",)
    is_ordered = True

    def build(self, layer, size):
        """Makes the map of heads of `size` numbers, and the weights of the gates."""
        super().build(layer, size)
        seed, heads = derive_seed(self.seed, "gate_kernel"), self.num_heads
        self.gate_kernel = layer.add_weight(
            name="gate_kernel",
            shape=(layer.hidden_dim, heads),
            initializer=initializers.GlorotUniform(seed),
        )
        self.gate_bias = layer.add_weight(
            name="gate_bias", shape=(heads,), initializer="zeros"
        )

    def further_inputs(self, x, context, mask=None, training=None):
        """log g, float32 (batch, heads, m, 1), 0 at padding."""
        kernel, bias = (
            ops.cast(weight, context.dtype)
            for weight in (self.gate_kernel, self.gate_bias)
        )
        gates = ops.cast(project(context, kernel) + bias, "float32")
        gates = ops.clip(gates, -STEEPEST, STEEPEST)
        decays = split_heads(ops.log_sigmoid(gates), self.num_heads)
        if mask is not None:
            decays = ops.where(mask[:, None, :, None], decays, 0.0)
        return (decays,)

    def inputs(self, queries, keys, further):
        """phi(Q), (1 - g) phi(K) and log g."""
        (decays,) = further
        return queries, keys * ops.cast(shares(keys, decays), keys.dtype), decays

    def gradient(self, parts, left, right):
        """See `Operator.gradient`.

        log K_ij has c_i - c_j as a term. So the gradient of c_i is the sum of K and its
        gradient's products over row i, less that over column i. The gradients of the
        features have these sums.
        """
        d_queries, d_keys = super().gradient(parts, left, right)
        queries, keys, _, decays = parts
        by_rows, by_columns = (
            ops.sum(ops.cast(x * d_x, decays.dtype), axis=-1, keepdims=True)
            for x, d_x in ((queries, d_queries), (keys, d_keys))
        )
        d_sums = after_earlier(by_rows, ops.shape(keys)[2]) - by_columns
        d_decays = ops.flip(ops.cumsum(ops.flip(d_sums, axis=2), axis=2), axis=2)
        return d_queries, d_keys, d_decays

    def _seen(self, products, decays):
        """Products of queries and keys (…, n, m) times exp(c_i - c_j)."""
        passed = ops.cumsum(decays, axis=-2)
        num_queries, num_keys = ops.shape(products)[-2:]
        logs = passed[..., num_keys - num_queries :, :] - transpose(passed)
        logs = ops.where(is_future(num_queries, num_keys), MASKED, logs)
        return products * ops.cast(ops.exp(logs), products.dtype)

    def _passing(self, parts):
        passed = ops.cumsum(chunks(parts[-1]), axis=3)
        all_passed = passed[..., -1:, :]

        def entering(rows):
            return rows * ops.cast(ops.exp(passed), rows.dtype)

        def leaving(x):
            return x * ops.cast(ops.exp(all_passed - passed), x.dtype)

        return entering, leaving, all_passed[..., 0]

    def mass(self, inputs, weights):
        """D w: K of one feature, which is 1."""
        queries, keys, decays = inputs
        ones = ops.cast(ops.ones_like(queries[..., :1]), weights.dtype)
        parts = self.make((ones, shares(keys, decays), decays), weights.shape[-1])
        return self.times(parts, weights)
