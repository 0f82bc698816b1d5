"""Linear attention: K = phi(Q) phi(K)^T, in time linear in the length.

    out_i = phi(q_i) S / (phi(q_i) z),    [S, z] = sum_j w_j phi(k_j) [V_j, 1]

over all keys j or, causally, over j <= i. docs/linear_attention.md derives it.
"""

from keras import ops

from models.attention import safe_sums
from models.attention.causal_chunks import (
    CHUNK,
    chunks,
    sums_after,
    sums_before,
)
from models.attention.feature_maps import FEATURE_MAPS, variants
from models.attention.feature_operator import FeatureOperator
from models.attention.heads import (
    after_earlier,
    num_earlier,
    sees_a_key,
    transpose,
    transposed_product,
)
from models.attention.operator import DividedOperator
from models.attention.pieces import joined
from models.attention.state_decoding import StateDecoding

# What K x is made of: the matrix P = phi(Q) phi(K)^T, phi(Q) times sums, or both, P
# within causal chunks and the sums of the chunks before.
SHORT, SUMS, CHUNKS = "short", "sums", "chunks"


class LinearOperator(StateDecoding, FeatureOperator, DividedOperator):
    """K = phi(Q) phi(K)^T (Katharopoulos et al. 2020, equation 5).

    Causally K is that matrix's lower triangle. Without attention normalisation it is
    read undivided, as any `Operator` that is no `DividedOperator`: what is read grows
    with the length (the sum update rule of Schlag, Irie and Schmidhuber 2021).

    Args: of `FeatureOperator`.

    Raises:
      ValueError: if it is to serve undivided as "cross".
    """

    attention_normalisation = True
    variants = variants(FEATURE_MAPS, normalised=False)
    linear_time = True

    def __init__(self, num_heads, use, seed, feature_map, **hyperparameters):
        super().__init__(num_heads, use, seed, feature_map, **hyperparameters)
        self.divides = self.attention_normalisation
        if use == "cross" and not self.divides:
            raise ValueError(
                "linear serves as 'cross' with attention_normalisation alone"
            )

    def make(self, inputs, columns):
        """phi(Q) and phi(K); P, but for `SUMS`, (batch, heads, n, m) or of chunks; and
        what a subclass makes it of besides."""
        queries, keys, *further = inputs
        sizes = ops.shape(queries)[2], ops.shape(keys)[2], keys.shape[-1]
        order = order_of(*sizes, columns, self.causal)
        if order == SUMS:
            return queries, keys
        rows, keys_in_rows, in_chunks = queries, keys, further
        if order == CHUNKS:
            rows, keys_in_rows = self._rows(queries, sizes[1]), chunks(keys)
            in_chunks = map(chunks, further)
        inside = self._seen(ops.matmul(rows, transpose(keys_in_rows)), *in_chunks)
        return queries, keys, inside, *further

    def times(self, parts, x):
        queries, keys, *inside = parts
        if _order(parts) == SHORT:
            return ops.matmul(inside[0], x)
        if _order(parts) == SUMS:
            return ops.matmul(queries, transposed_product(keys, x))
        num_queries, num_keys = ops.shape(queries)[2], ops.shape(keys)[2]
        x, (entering, leaving, decays) = chunks(x), self._passing(parts)
        sums = transposed_product(chunks(keys), leaving(x))
        sums = sums_before(sums, decays)
        rows = self._rows(queries, num_keys)
        product = entering(ops.matmul(rows, sums)) + ops.matmul(inside[0], x)
        return self._joined_rows(product, num_queries, num_keys)

    def transposed_times(self, parts, y):
        queries, keys, *inside = parts
        if _order(parts) == SHORT:
            return transposed_product(inside[0], y)
        if _order(parts) == SUMS:
            return ops.matmul(keys, transposed_product(queries, y))
        num_keys = ops.shape(keys)[2]
        y, rows = (self._rows(x, num_keys) for x in (y, queries))
        entering, leaving, decays = self._passing(parts)
        sums = sums_after(transposed_product(rows, entering(y)), decays)
        product = leaving(ops.matmul(chunks(keys), sums))
        return joined(product + transposed_product(inside[0], y), num_keys)

    def gradient(self, parts, left, right):
        queries, keys, *inside = parts
        order = _order(parts)
        if order == SUMS:
            by_keys = ops.matmul(left, transpose(transposed_product(keys, right)))
            return by_keys, ops.matmul(
                right, transpose(transposed_product(queries, left))
            )
        num_queries, num_keys = ops.shape(queries)[2], ops.shape(keys)[2]
        further = inside[1:]
        if order == CHUNKS:
            left, queries = (self._rows(x, num_keys) for x in (left, queries))
            right, keys, *further = map(chunks, (right, keys, *further))
        d_inside = self._seen(ops.matmul(left, transpose(right)), *further)
        d_queries, d_keys = (
            ops.matmul(d_inside, keys),
            transposed_product(d_inside, queries),
        )
        if order == SHORT:
            return d_queries, d_keys
        entering, leaving, decays = self._passing(parts)
        left, right = entering(left), leaving(right)
        before = sums_before(transposed_product(keys, right), decays)
        after = sums_after(transposed_product(queries, left), decays)
        d_queries += ops.matmul(left, transpose(before))
        d_keys += ops.matmul(right, transpose(after))
        d_queries = self._joined_rows(d_queries, num_queries, num_keys)
        return d_queries, joined(d_keys, num_keys)

    def sees(self, parts, mask, num_queries):
        """See `DividedOperator.sees`; where all features are zero nothing is read."""
        if not self.feature_map.may_be_zero:
            return sees_a_key(mask, num_queries, self.causal)
        keys = parts[1]
        real = ops.ones_like(keys[..., :1])
        if mask is not None:
            real *= ops.cast(mask, real.dtype)[:, None, :, None]
        return self.times(parts, real) > 0

    def read_apart(self, inputs, biases, values):
        """By sums of logarithms, each feature relative to its own maximum."""
        queries, keys = inputs
        num_queries, num_keys = ops.shape(queries)[2], ops.shape(keys)[2]
        if self.causal:
            queries = after_earlier(queries, num_keys)
        attended = safe_sums.attend(queries, keys, biases, values, self.causal)
        return attended[:, :, ops.shape(attended)[2] - num_queries :]

    def _seen(self, products):
        """Products of queries and keys (…, n, m), zero at keys that come after."""
        if not self.causal:
            return products
        return ops.tril(products, num_earlier(*ops.shape(products)[-2:]))

    def _passing(self, parts):
        """What becomes of sums between causal chunks: functions of what a chunk's rows
        take of those before it, and of what its keys give to those after it, (batch,
        heads, chunks, C, size), and the decays of `sums_before`."""
        return _unchanged, _unchanged, None

    def _rows(self, x, num_keys):
        return chunks(after_earlier(x, num_keys))

    def _joined_rows(self, x, num_queries, num_keys):
        return joined(x, num_keys)[:, :, num_earlier(num_queries, num_keys) :]


def order_of(num_queries, num_keys, features: int, columns: int, causal: bool) -> str:
    """The order of products that takes the fewest operations.

    P and its products with the columns of all reads take n m (f + columns) of them, and
    sums and their products (n + m) f columns. Lengths that are not known before it runs
    are not short.
    """
    if isinstance(num_queries, int) and isinstance(num_keys, int):
        alone = num_queries * num_keys * (features + columns)
        by_sums = (num_queries + num_keys) * features * columns
        is_one_chunk = causal and num_keys <= CHUNK
        if is_one_chunk or alone <= by_sums:
            return SHORT
    return CHUNKS if causal else SUMS


def _order(parts):
    if len(parts) == 2:
        return SUMS
    return SHORT if len(parts[2].shape) == 4 else CHUNKS


def _unchanged(x):
    return x
