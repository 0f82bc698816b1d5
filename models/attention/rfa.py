"""Random feature attention: linear attention by sines and cosines."""

from keras import ops

from common.fields import integer
from models.attention.feature_maps import SineFeatures
from models.attention.heads import after_earlier, largest
from models.attention.linear import LinearOperator
from models.attention.operator import DividedOperator
from models.attention.signed_decoding import SignedDecoding
from models.attention.signed_sums import attend, least_mean
from models.seeds import derive_seed


class RfaOperator(SignedDecoding, LinearOperator):
    """K = phi(Q) phi(K)^T of `SineFeatures` (Peng et al. 2021, equations 4 and 5).

    Causally K is that matrix's lower triangle. Its entries, divided by m, estimate
    exp(-|sigma (q - k)|^2 / 2) for queries and keys of unit length, which is
    exp(sigma^2 q . k) up to a factor where all of sigma is alike.

    A sum of estimates may be near zero or negative. So what is divided by is bounded
    from below, relative to the weights in the sum:

        out_i = sum_j K_ij w_j V_j / max(sum_j K_ij w_j, sum_j D_ij w_j m / sqrt(2m))

    where D_ij is 1 if i sees j, and else 0. The mean of the estimates so counts as no
    less than 1 / sqrt(2m), the largest deviation that one has. With more vectors the
    bound falls, and outputs tend to those of the exact kernel. The authors' code takes
    the absolute value and bounds it by a constant. What b are shifted by would matter
    then.

    The bound is positive where a key is seen, so b may be any. If all the w_j that a
    row sees underflow, `signed_sums` reads the block.

    What else differs from the paper: vectors are never drawn anew, and are those of all
    heads. No temperature stands beside sigma.

    Args:
      num_vectors: m. There are 2m features.
    """

    memory = None
    fields = {
        "num_vectors": integer(
            "m, random vectors of RFA a head: a sine and a cosine of each.",
            maximum=4_096,
        )
    }
    variants = {"": {"num_vectors": 64}}
    # So few that the bound is met.
    small = {"num_vectors": 8}
    inert_weights = ()

    def __init__(self, num_heads, use, seed, num_vectors):
        DividedOperator.__init__(self, num_heads, use, seed)
        self.num_vectors = num_vectors

    @classmethod
    def fields_of(cls, hyperparameters):
        """See `AttentionKind.fields_of`."""
        return cls.fields

    @classmethod
    def check(cls, config):
        """Checks nothing: no field says how features are normalised."""

    def build(self, layer, size):
        """Makes the map of heads of `size` numbers."""
        seed = derive_seed(self.seed, "features")
        self.feature_map = SineFeatures(self.num_heads, size, seed, self.num_vectors)
        self.feature_map.build(layer)

    def prepare_queries(self, queries, scale):
        """phi(Q). Vectors of unit length have no scale."""
        return super().prepare_queries(queries, 1)

    def prepare_keys(self, keys, scale, mask=None):
        """phi(K), likewise."""
        return super().prepare_keys(keys, 1, mask)

    def bounded(self, sums, inputs, biases):
        """See `DividedOperator.bounded` and the formula of the class."""
        weights = ops.exp(biases - largest(biases, axis=2))
        mass = ops.cast(self.mass(inputs, weights), sums.dtype)
        return ops.maximum(sums, least_mean(inputs[0]) * mass)

    def mass(self, inputs, weights):
        """D w, differentiable as usual, (batch, heads, n or 1, reads)."""
        if not self.causal:
            return ops.sum(weights, axis=2, keepdims=True)
        queries, keys, *_ = inputs
        earlier = ops.shape(keys)[2] - ops.shape(queries)[2]
        return ops.cumsum(weights, axis=2)[:, :, earlier:]

    def read_apart(self, inputs, biases, values):
        """By weights relative to the largest that a row sees."""
        queries, keys, *decays = inputs
        num_queries, num_keys = ops.shape(queries)[2], ops.shape(keys)[2]
        if self.causal:
            queries = after_earlier(queries, num_keys)
        attended = attend((queries, keys, *decays), biases, values, self.causal)
        return attended[:, :, ops.shape(attended)[2] - num_queries :]
