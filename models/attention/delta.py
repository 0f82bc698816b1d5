"""The delta rule: linear attention whose memory takes out what it puts in anew."""

from keras import initializers, ops

from common.fields import fail, integer
from models.attention.cache import State
from models.attention.causal_chunks import chunks
from models.attention.decoding import Carrying, Step, after_identity, beams_first
from models.attention.feature_maps import FEATURE_MAPS, Tanh, variants
from models.attention.feature_operator import FeatureOperator
from models.attention.heads import (
    after_earlier,
    identity,
    num_earlier,
    split_heads,
    transpose,
    transposed_product,
)
from models.attention.pieces import joined
from models.attention.propagation import states_after, states_before, steps
from models.layers.dense import project
from models.seeds import derive_seed

MAPS = {**FEATURE_MAPS, "tanh": Tanh}
# Of fewer positions products are too small to be fast.
SHORTEST_CHUNK = 32
FIELDS = {
    "largest_strength": integer("β of the delta rule lies between 0 and this.", 1, 2)
}


class DeltaOperator(Carrying, FeatureOperator):
    """K of a memory S that each position corrects (Schlag, Irie and Schmidhuber 2021,
    equations 20 to 25, with the sum normalisation of section 4.2):

        u_j = β_j (v_j - S_(j-1)^T φ(k_j)),   S_j = S_(j-1) + φ(k_j) u_j^T,
        out_i = S_i^T φ(q_i)

    with features that sum to one and the strengths β_j = σ(w_β x_j) of each head. So

        K = tril(φ(Q) φ(K)^T) T diag(β),   T = (I + diag(β) tril(φ(K) φ(K)^T, -1))^-1

    T is of keys and strengths alone. One triangular solve serves all reads. In chunks
    of C positions with the state S_c before each, that is

        out = N x + R S_c,   S_(c+1) = A_c S_c + P^T x
        N = tril(φ(Q) φ(K)^T) T β,   P = (T β)^T φ(K)
        R = φ(Q) - N φ(K),   A_c = I - P^T φ(K)

    and A of chunks after one another is multiplied once (`propagation`). Padding has β
    = 0. Where all features are zero they stay so, and nothing is written or read. T is
    solved in float32.

    With attention normalisation, out_i is divided by z_i · φ(q_i), where z_i is the sum
    of φ(k_j) to i (equations 26 and 27).

    Without sum normalisation and with tanh for φ, these are the updates of the rule to
    which the paper compares it (section 6.1.2), which also bounds the state. Without
    that it may grow without end.

    Args:
      largest_strength: 1, or 2 for β = 2 σ(w_β x), with which a write may turn the
        sign of what its key has read.
      **hyperparameters: of `FeatureOperator`.
    """

    uses = ("causal",)
    feature_maps = MAPS
    sum_normalisation = True
    variants = {
        suffix: {**hyperparameters, "largest_strength": 1}
        for suffix, hyperparameters in variants(MAPS, normalised=True).items()
    }
    linear_time = True
    is_ordered = True

    def __init__(self, num_heads, use, seed, largest_strength, **hyperparameters):
        super().__init__(num_heads, use, seed, **hyperparameters)
        self.largest_strength = largest_strength

    @classmethod
    def fields_of(cls, hyperparameters):
        """See `FeatureOperator.fields_of`."""
        return {**super().fields_of(hyperparameters), **FIELDS}

    @classmethod
    def check(cls, config):
        """See `AttentionKind.check`; z is no part of what a text leaves."""
        super().check(config)
        divides = config.model.attention.get("attention_normalisation")
        if divides and config.data.get("memory"):
            expected = "False beside model.attention.attention_normalisation"
            fail("data.memory", expected, True)

    def build(self, layer, size):
        """Makes the map of heads of `size` numbers, and w_β."""
        super().build(layer, size)
        self.strength_kernel = layer.add_weight(
            name="strength_kernel",
            shape=(layer.hidden_dim, self.num_heads),
            initializer=initializers.GlorotUniform(derive_seed(self.seed, "strength")),
        )

    def prepare_keys(self, keys, scale, mask=None):
        """See `FeatureOperator.prepare_keys`."""
        keys, logs = super().prepare_keys(keys, scale, mask)
        if self.attention_normalisation and mask is not None:
            keys = keys * ops.cast(mask, keys.dtype)[:, None, :, None]
        return keys, logs

    def inputs(self, queries, keys, further=()):
        """See `Operator.inputs`; queries are divided by what outputs are to be."""
        if self.attention_normalisation:
            earlier = num_earlier(ops.shape(queries)[2], ops.shape(keys)[2])
            # In bfloat16 a sum of 256 keys stays as it is when one more is added.
            totals = ops.cumsum(ops.cast(keys, "float32"), axis=2)
            queries = _divided(queries, totals[:, :, earlier:])
        return super().inputs(queries, keys, further)

    def inputs_of_step(self, queries, keys, x, position):
        """See `Decoding.inputs_of_step`; `step` divides."""
        return super().inputs(queries, keys, self.further_inputs(x, x))

    def further_inputs(self, x, context, mask=None, training=None):
        """β, (batch, heads, m, 1), 0 at padding."""
        num_earlier(ops.shape(x)[1], ops.shape(context)[1])  # refuses more queries
        kernel = ops.cast(self.strength_kernel, context.dtype)
        strengths = self.largest_strength * ops.sigmoid(project(context, kernel))
        strengths = split_heads(strengths, self.num_heads)
        if mask is not None:
            strengths = strengths * ops.cast(mask, strengths.dtype)[:, None, :, None]
        return (strengths,)

    def make(self, inputs, columns):
        """N, R, P, tril(φ(Q) φ(K)^T), T and the steps of A, after the inputs."""
        queries, keys, strengths = _inputs_in_chunks(inputs)
        seen = ops.tril(ops.matmul(queries, transpose(keys)))
        solved = _solved(keys, strengths)
        written = solved * transpose(strengths)
        within = ops.matmul(seen, written)
        reading = queries - ops.matmul(within, keys)
        writing = transposed_product(written, keys)
        levels = []
        if keys.shape[2] not in (1, 2):  # nothing passes over a chunk
            one = ops.eye(keys.shape[-1], dtype=keys.dtype)
            levels = steps(one - transposed_product(writing, keys))
        return *inputs, within, reading, writing, seen, solved, *levels

    def times(self, parts, x):
        if _are_few(parts[0], x):
            return transposed_product(self._written_out(parts), x)
        queries, keys, _, within, reading, writing, _, _, *levels = parts
        num_keys, x = ops.shape(keys)[2], _in_chunks(keys, x)
        product = ops.matmul(within, x)
        if within.shape[2] != 1:
            states = states_before(levels, transposed_product(writing, x))
            product = product + ops.matmul(reading, states)
        return joined(product, num_keys)[:, :, -ops.shape(queries)[2] :]

    def transposed_times(self, parts, y):
        if _are_few(parts[0], y):
            return ops.matmul(self._written_out(parts), y)
        _, keys, _, within, reading, writing, _, _, *levels = parts
        num_keys = ops.shape(keys)[2]
        y = _in_chunks(keys, after_earlier(y, num_keys))
        product = transposed_product(within, y)
        if within.shape[2] != 1:
            states = states_after(levels, transposed_product(reading, y))
            product = product + ops.matmul(writing, states)
        return joined(product, num_keys)

    def _written_out(self, parts):
        """K^T, (batch, heads, m, n)."""
        queries = parts[0]
        return self.transposed_times(parts, identity(queries, ops.shape(queries)[2]))

    def gradient(self, parts, left, right):
        """See `Operator.gradient`.

        It is that of the sum of y * out(x), where x are the columns of right and y
        those of left. Corrections are v - S^T φ(k), for the state before each position,
        and β times these, solved by T, is u.
        """
        inputs, (within, reading, writing, *further) = parts[:3], parts[3:]
        seen, solved, *levels = further
        num_queries, num_keys = (ops.shape(each)[2] for each in inputs[:2])
        if _are_few(inputs[0], left):  # left right^T in as many columns as rows
            right = ops.matmul(right, transpose(left))
            left = identity(left, num_queries)
        queries, keys, strengths = _inputs_in_chunks(inputs)
        x = _in_chunks(inputs[1], right)
        y = _in_chunks(inputs[1], after_earlier(left, num_keys))
        corrections, d_written = x, transposed_product(seen, y)
        if within.shape[2] != 1:
            before = states_before(levels, transposed_product(writing, x))
            after = states_after(levels, transposed_product(reading, y))
            corrections = x - ops.matmul(keys, before)
            d_written = d_written + ops.matmul(keys, after)
        written = ops.matmul(solved, strengths * corrections)
        products = ops.tril(ops.matmul(keys, transpose(keys)), -1)
        corrections = corrections - ops.matmul(products, written)
        d_corrections = transposed_product(solved, d_written)
        d_strengths = ops.sum(d_corrections * corrections, axis=-1, keepdims=True)
        d_corrections = strengths * d_corrections
        d_products = -ops.tril(ops.matmul(d_corrections, transpose(written)), -1)
        d_seen = ops.tril(ops.matmul(y, transpose(written)))
        d_queries = ops.matmul(d_seen, keys)
        d_keys = transposed_product(d_seen, queries)
        d_keys = d_keys + ops.matmul(d_products + transpose(d_products), keys)
        if within.shape[2] != 1:
            d_queries = d_queries + ops.matmul(y, transpose(before))
            d_keys = d_keys + ops.matmul(written, transpose(after))
            d_keys = d_keys - ops.matmul(d_corrections, transpose(before))
        d_queries, d_keys, d_strengths = (
            joined(x, num_keys) for x in (d_queries, d_keys, d_strengths)
        )
        return d_queries[:, :, -num_queries:], d_keys, d_strengths

    def empty_cache(self, batch_size, beams, key_size, size, reads, dtype):
        """A `State` S for each read, (batch, beams, heads, f, size), in float32; then
        z, with attention normalisation."""
        features = self.feature_map.num_features
        shape = (batch_size, beams, self.num_heads, features, size)
        states = [State(ops.zeros(shape, "float32")) for _ in range(max(reads, 1))]
        if self.attention_normalisation:
            states.append(State(ops.zeros(shape[:-1], "float32")))
        return states

    def step(self, inputs, biases, cache, visible):
        """Shared are φ(q) and φ(k), (batch, beams, heads, f), float32; β, (…, 1); and w
        of all reads, (…, reads), or None. Biases are None where there are none."""
        queries, keys, strengths = map(beams_first, inputs)
        cache = [*cache]
        if self.attention_normalisation:
            total = cache.pop()
            cache.append(State(total.value + keys))
            queries = _divided(queries, cache[-1].value)
        weights = None
        if biases is not None:
            weights = 2 * ops.sigmoid(beams_first(biases))
        return Step(self, (queries, keys, strengths, weights), cache)

    def advance(self, shared, number, past, values):
        """See `RecurrentDecoding`."""
        queries, keys, strengths, weights = shared
        if weights is not None:
            values = values * weights[..., number, None]
        retrieved = ops.einsum("bnhf,bnhfv->bnhv", keys, past)
        written = strengths * (values - retrieved)
        past = past + keys[..., None] * written[:, :, :, None]
        return ops.einsum("bnhf,bnhfv->bnhv", queries, past), past

    def keys_of(self, memory):
        """See `Carrying`: such keys, written with strength 1, give the state itself."""
        batch, heads, features, _ = ops.shape(memory[0])
        return ops.zeros((batch, heads, features, len(memory))), memory

    def after_features(self, inputs, count):
        """See `Carrying`."""
        queries, keys, strengths = inputs
        ones = ops.ones_like(strengths[:, :, :1])
        strengths = [ops.repeat(ones, count, axis=2), strengths]
        keys = after_identity(keys, count)
        return queries, keys, ops.concatenate(strengths, axis=2)

    def left_by(self, parts, biases, values):
        """See `Carrying`."""
        _, keys, _, _, _, writing, _, _, *levels = parts
        weights = ops.cast(2 * ops.sigmoid(biases), values.dtype)
        written = transposed_product(writing, _in_chunks(keys, weights * values))
        after = written[:, :, -1]
        if writing.shape[2] != 1:
            before = states_before(levels, written)[:, :, -1]
            read = ops.matmul(_in_chunks(keys, keys)[:, :, -1], before)
            after = after + before - transposed_product(writing[:, :, -1], read)
        return State(ops.cast(after, "float32")[:, None])


def _divided(queries, totals):
    """φ(q) by z · φ(q), which are zero where all that z adds up are; z in float32."""
    by_sums = ops.cast(queries, "float32")
    products = ops.sum(by_sums * totals, axis=-1, keepdims=True)
    quotients = by_sums / ops.where(products == 0, 1, products)
    return ops.cast(quotients, queries.dtype)


def _are_few(queries, x):
    """Whether K has so few rows beside the columns of x that it is written out."""
    num_queries = ops.shape(queries)[2]
    return isinstance(num_queries, int) and 2 * num_queries <= x.shape[-1]


def _in_chunks(keys, x):
    """(batch, heads, n, size) in chunks of as many positions as φ(K) has features.

    A position costs T and N some C products, and what passes between chunks f^2 / C.
    """
    return chunks(x, most=max(SHORTEST_CHUNK, keys.shape[-1]))


def _inputs_in_chunks(inputs):
    """φ(Q) at the positions of the keys, φ(K) and β."""
    queries, keys, strengths = inputs
    queries = after_earlier(queries, ops.shape(keys)[2])
    return [_in_chunks(keys, x) for x in (queries, keys, strengths)]


def _solved(keys, strengths):
    """T, whose rounding to the keys' dtype is its only one."""
    dtype = keys.dtype
    keys, strengths = (ops.cast(x, "float32") for x in (keys, strengths))
    products = strengths * ops.matmul(keys, transpose(keys))
    places = ops.arange(ops.shape(products)[-1])
    is_diagonal = places == places[:, None]
    # What is above the diagonal is not read.
    lower = ops.where(is_diagonal, 1.0, products)
    one = ops.broadcast_to(ops.cast(is_diagonal, "float32"), ops.shape(lower))
    return ops.cast(ops.solve_triangular(lower, one, lower=True), dtype)
