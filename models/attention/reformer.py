"""Reformer: a softmax within the buckets of a hash, in time n log n."""

import math

from keras import ops

from common.fields import even, fail, integer, optional
from models.attention import sorted_chunks
from models.attention.feature_maps import draw_vectors
from models.attention.heads import (
    LOWEST,
    MASKED,
    check_a_query_for_each_key,
    largest,
    transpose,
)
from models.attention.operator import DividedOperator
from models.attention.sorted_chunks import joined, taken, with_chunk_before
from models.gradients import custom_gradient
from models.seeds import derive_seed

# Added to |q|^2: a query of zeros then is a key of zeros.
TINY = 1e-8
# A bucket times the length is to be an int32.
MOST_CODES = 2**30
# What `sorted_chunks.in_order` makes of a bucket and a place is to be exact in float32.
MOST_EXACT = 2**24


class ReformerOperator(DividedOperator):
    """K_ij = exp(s q_i k_j) for j in P_i, and 0 for others, with k_j = q_j / |q_j|.

    P_i are the keys that any round of hashing puts into the bucket of query i (Kitaev
    et al. 2020, "Reformer", section 2, equations 3 to 6). The scores' scale s acts on
    queries alone, since keys have length 1.

    A round sorts the tokens by bucket and position, and cuts them into chunks. A query
    meets the keys of its bucket that lie in its chunk and the one before (equation 5).
    It meets itself only if no round has another key for it. A key that it meets in N
    rounds counts once: appendix A divides it by N in each of them, and here the first
    of them has it. As K is read with a division, one maximum of all rounds stands for
    the weights exp(z^r - z) with which the appendix joins them.

    Causally a query meets the `chunk` keys before it in its bucket. The paper's chunks
    let the future in, since where they are cut depends on the buckets of later tokens.

    The hash is argmax([xR, -xR]) for a random R (Andoni et al. 2015). It is a constant,
    drawn from the seed and not again in training, and all heads share it. Unless their
    number is given there are about 2 max_length / chunk buckets, so one of average size
    fills half a chunk. The length of the text at hand does not count: padding and later
    tokens would change the buckets of others. Two hashes of about the root of the
    number each make a bucket together, as in the authors' code, unless the number has
    no two even factors. One hash would take time quadratic in the length.
    Texts longer than `max_length` have larger buckets.

    Padding may lie anywhere. It has the last bucket for itself, so it moves no real
    token to another chunk.

    Reversible residuals (section 3) are the stack's (`models.reversible`). Their
    backward pass computes the input of the attention again. Rounding in it may move a
    token that lies between two buckets, whose gradient then is of another bucket.

    Args:
      rounds: of hashing.
      chunk: tokens of one.
      buckets: of each round, an even number; None for the number by `max_length`.

    Raises:
      ValueError: if neither `buckets` nor the layer's `max_length` is given, or if
        there are not as many queries as keys.
    """

    uses = ("self", "causal")
    projections = ("query",)
    fields = {
        "rounds": integer("So many hashes give a query its keys.", maximum=64),
        "chunk": integer("Tokens of a chunk of sorted ones.", 2, 65_536),
        "buckets": optional(
            even("Buckets of a round; about 2 max_length / chunk if unset.", 65_536)
        ),
    }
    variants = {"": {"rounds": 2, "chunk": 64}}
    small = {"chunk": 4}
    linear_time = True
    is_ordered = True

    def __init__(self, num_heads, use, seed, rounds, chunk, buckets=None):
        super().__init__(num_heads, use, seed)
        self.rounds = rounds
        self.chunk = chunk
        self.buckets = buckets

    @staticmethod
    def check(config):
        """See `AttentionKind.check`."""
        attention, longest = config.model.attention, config.data.max_length
        buckets, chunk = attention.get("buckets"), attention.chunk
        reach = sorted_chunks.reach(chunk, causal=True)
        most = min(MOST_CODES // longest, (MOST_EXACT - longest) // reach)
        if buckets and buckets > most:
            expected = f"at most {most:,} at data.max_length={longest:,}"
            expected += f" and model.attention.chunk={chunk:,}"
            fail("model.attention.buckets", expected, buckets)

    def build(self, layer, size):
        """Draws R of each hash, (size, rounds, half of its buckets)."""
        if self.buckets:
            self.bucket_counts = even_factors(self.buckets)
        elif layer.max_length is None:
            raise ValueError("reformer chooses its buckets by max_length, got None")
        else:
            self.bucket_counts = bucket_counts(layer.max_length, self.chunk)
        self.rotations = []
        for number, count in enumerate(self.bucket_counts):
            seed = derive_seed(self.seed, "rotations", str(number))
            vectors = draw_vectors(self.rounds * count // 2, size, False, seed)
            self.rotations.append(vectors.T.reshape(size, self.rounds, count // 2))

    def further_inputs(self, x, context, mask=None, training=None):
        """Which tokens are real, bool (batch, n).

        Raises:
          ValueError: if there are not as many queries as keys.
        """
        check_a_query_for_each_key("reformer", x, context)
        return (ops.ones(ops.shape(x)[:2], "bool") if mask is None else mask,)

    def inputs(self, queries, keys, further=()):
        """Queries, the keys made of them, and which are real."""
        squares = ops.sum(queries * queries, axis=-1, keepdims=True)
        return queries, queries * ops.rsqrt(squares + TINY), *further

    def make(self, inputs, columns):
        """K, (batch, heads, rounds, chunks, rows, columns), queries, keys and order."""
        queries, keys, real = inputs
        return self._parts(queries, keys, *self._sorted(keys, real))

    def times(self, parts, x):
        kernel, _, _, tokens, places = parts
        columns = taken(x, with_chunk_before(tokens))
        return joined(ops.matmul(kernel, columns), places)

    def transposed_times(self, parts, y):
        kernel, _, _, tokens, places = parts
        product = ops.einsum("bhrcqk,bhrcqv->bhrckv", kernel, taken(y, tokens))
        return joined(sorted_chunks.added_to_chunk_before(product), places)

    def gradient(self, parts, left, right):
        kernel, queries, keys, tokens, places = parts
        columns = taken(right, with_chunk_before(tokens))
        d_kernel = ops.matmul(taken(left, tokens), transpose(columns))
        # No output depends on how a row of K is scaled: the maxima have no gradient.
        d_scores = kernel * d_kernel, queries, keys, tokens, places
        by_queries = self.times(d_scores, keys)
        return by_queries, self.transposed_times(d_scores, queries), None

    def sees(self, parts, mask, num_queries):
        """See `DividedOperator.sees`: each real query sees itself if nothing else."""
        return None if mask is None else mask[:, None, :, None]

    def read_apart(self, inputs, biases, values):
        """A softmax of the scores and biases, those being one more number of a key.

        K is made again for the gradient, not kept.
        """

        @custom_gradient
        def read(queries, keys, real, biases, values):
            # Padding meets padding alone, and what it reads is left aside.
            added = ops.where(real[:, None, :, None], biases, 0.0)
            longer = (
                ops.concatenate([queries, ops.ones_like(queries[..., :1])], axis=-1),
                ops.concatenate([keys, ops.cast(added, keys.dtype)], axis=-1),
            )
            order = self._sorted(keys, real)
            right = ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)
            product = self.times(self._parts(*longer, *order), right)
            sums = product[..., -1:]
            outputs = product[..., :-1] / sums

            def backward(d_outputs):
                parts = self._parts(*longer, *order)
                left = d_outputs / sums
                d_values = self.transposed_times(parts, left)
                d_sums = -ops.sum(left * outputs, axis=-1, keepdims=True)
                left = ops.concatenate([left, d_sums], axis=-1)
                by_queries, by_keys, _ = self.gradient(parts, left, right)
                d_biases = ops.cast(by_keys[..., -1:], biases.dtype)
                return by_queries[..., :-1], by_keys[..., :-1], None, d_biases, d_values

            return outputs, backward

        return read(*inputs, biases, values)

    def _sorted(self, keys, real):
        """See `sorted_chunks.in_order`."""
        batch, heads, length, size = ops.shape(keys)
        shape = batch, heads, length, self.rounds
        buckets = ops.zeros(shape, "int32")
        for count, rotations in zip(self.bucket_counts, self.rotations, strict=True):
            rotations = ops.convert_to_tensor(rotations.reshape(size, -1), keys.dtype)
            turned = ops.reshape(ops.matmul(keys, rotations), (*shape, count // 2))
            hashes = ops.argmax(ops.concatenate([turned, -turned], axis=-1), axis=-1)
            buckets = count * buckets + ops.cast(hashes, "int32")
        last = math.prod(self.bucket_counts)
        buckets = ops.where(real[:, None, :, None], buckets, last)
        return sorted_chunks.in_order(buckets, self.chunk, self.causal)

    def _parts(self, queries, keys, tokens, places, codes):
        columns = taken(keys, with_chunk_before(tokens))
        scores = ops.matmul(taken(queries, tokens), transpose(columns))
        num_rows, num_columns = scores.shape[-2:]
        itself = ops.arange(num_columns - num_rows, num_columns)[:, None]
        scores = ops.where(itself == ops.arange(num_columns), LOWEST, scores)
        reach = sorted_chunks.reach(self.chunk, self.causal)
        scores = ops.where(sorted_chunks.met(codes, reach), scores, MASKED)
        maxima = ops.max(taken(largest(scores, axis=-1), places), axis=2)
        return ops.exp(scores - taken(maxima, tokens)), queries, keys, tokens, places


def bucket_counts(length: int, chunk: int) -> tuple[int, ...]:
    """Even numbers whose product is about 2 length / chunk; none for one bucket."""
    if length <= chunk:
        return ()
    buckets = min(2 * length / chunk, MOST_CODES / length)
    first = 2 * max(1, round(buckets**0.5 / 2))
    return first, 2 * max(1, round(buckets / first / 2))


def even_factors(number: int) -> tuple[int, ...]:
    """The two even numbers nearest each other whose product an even number is; the
    number itself where there are none."""
    quarter, remainder = divmod(number, 4)
    if remainder:
        return (number,)
    half = max(x for x in range(1, math.isqrt(quarter) + 1) if quarter % x == 0)
    return 2 * half, 2 * (quarter // half)
