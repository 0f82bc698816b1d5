"""The fast evaluation of linear attention, with a gradient by hand.

    out^l = (phi(Q) S^l) / (phi(Q) z^l),   S^l = phi(K)^T X^l,   X^l = w^l V^l

Causally the sums of all chunks before are S^l, and P = phi(Q) phi(K)^T within the chunk
adds P X^l. Short texts have P alone, of all queries and keys, in fewer operations. The
gradients of phi(Q), phi(K) and P are sums over depths,

    sum_l G^l S^l^T,  sum_l X^l dS^l^T,  sum_l G^l X^l^T    with G^l = d out^l / den^l

Automatic differentiation would make and add an array of their size at each depth. Here
each depth hands its four factors to the block's start, which makes each sum by one
product. So each depth attends once for a state, and there are first derivatives only.
"""

from typing import Any, NamedTuple

from keras import ops

from models.attention.heads import merge_heads, split_heads
from models.gradients import custom_gradient

# Queries and keys of a causal chunk, at most.
CHUNK = 128
# What phi(Q) phi(K)^T x is made of: P x, phi(Q) times sums, or both of chunks.
SHORT, SUMS, CHUNKS = "short", "sums", "chunks"


class Shared(NamedTuple):
    """What the depths share: constants to automatic differentiation. The arrays of
    `CHUNKS` have an axis of chunks behind heads.

    Attributes:
      form: `SHORT`, `SUMS` or `CHUNKS`.
      queries, keys: phi(q), phi(k), (batch, heads, length, f).
      within: P, (batch, heads, n, m) or (batch, heads, chunks, C, C); a zero if `SUMS`.
    """

    form: str
    queries: Any
    keys: Any
    within: Any


class Depth(NamedTuple):
    """What a depth has of its own. To automatic differentiation all but biases,
    denominators and carriers are constants.

    Attributes:
      biases: b, (batch, heads, m, 1).
      denominators: phi(Q) z, (batch, heads, n, 1).
      weights: w = e^(b - max b), in the chunks of `CHUNKS`; 0 at padding.
      inverses: 1 / (phi(Q) z), likewise; 0 for a query that sees no feature.
      carriers: arrays of zeros as G, X, S, dS are. Their gradients are these.
    """

    biases: Any
    denominators: Any
    weights: Any
    inverses: Any
    carriers: tuple


def share(queries, keys, columns, causal: bool, num_depths: int, size: int):
    """Of features (batch, heads, length, f), for values of a size.

    Args:
      columns: (batch, heads, m, count).

    Returns:
      `Shared`; phi(Q) phi(K)^T times the columns, over the keys that a query sees,
      (batch, heads, n, count); and the carriers of each depth.
    """
    length, num_keys = ops.shape(queries)[2], ops.shape(keys)[2]
    width = num_depths * size + columns.shape[-1]
    form = form_of(length, num_keys, keys.shape[-1], width, causal)
    if form == CHUNKS:
        queries, keys, columns = map(chunks, (queries, keys, columns))

    @custom_gradient
    def start(queries, keys, columns):
        inside = ops.zeros((), queries.dtype)
        if form != SUMS:
            inside = within(queries, keys, causal)
        totals, sums_of_columns = _times(form, queries, keys, inside, columns)
        zeros = [
            ops.zeros((*ops.shape(x)[:-1], size), x.dtype) for x in (queries, keys)
        ]
        num_sums = 0 if form == SHORT else keys.shape[-1]
        sums = ops.zeros((*ops.shape(keys)[:-2], num_sums, size), keys.dtype)
        carriers = (*zeros, sums, sums)

        def backward(*gradients):
            d_totals, gradients = gradients[1], gradients[2:]
            d_columns, d_sums = _times_transposed(form, queries, keys, inside, d_totals)
            # Needs what the first depth hands back. Otherwise X of all depths is joined
            # as soon as it is there, which is when memory is fullest.
            total = ops.sum(d_totals)
            late = ops.where(ops.isnan(total), total, columns)
            own = (d_totals, late, sums_of_columns, d_sums)
            slopes, weighted, sums, d_sums = (
                ops.concatenate([*gradients[i::4], own[i]], axis=-1) for i in range(4)
            )
            parts = []
            if form != SHORT:
                by_sums = ((slopes, sums), (weighted, d_sums))
                parts.append([ops.matmul(x, _transpose(y)) for x, y in by_sums])
            if form != SUMS:
                d_inside = ops.matmul(slopes, _transpose(weighted))
                if causal:
                    d_inside = ops.tril(d_inside)
                d_queries = ops.matmul(d_inside, keys)
                parts.append([d_queries, transposed_times(d_inside, queries)])
            d_queries, d_keys = map(sum, zip(*parts, strict=True))
            return d_queries, d_keys, d_columns

        return (inside, totals, *carriers * num_depths), backward

    inside, totals, *carriers = start(queries, keys, columns)
    carriers = [tuple(carriers[i : i + 4]) for i in range(0, 4 * num_depths, 4)]
    constants = map(ops.stop_gradient, (queries, keys, inside))
    if form == CHUNKS:
        totals = whole(totals, length)
    return Shared(form, *constants), totals, carriers


def form_of(num_queries, num_keys, features: int, width: int, causal: bool) -> str:
    """The form that takes the fewest operations.

    P and its products with `width` columns, of all depths, take n m (f + width) of
    them, and sums and their products (n + m) f width. Lengths that are not known before
    it runs are not short.
    """
    if isinstance(num_queries, int) and isinstance(num_keys, int):
        alone = num_queries * num_keys * (features + width)
        by_sums = (num_queries + num_keys) * features * width
        is_one_chunk = causal and num_queries <= CHUNK
        if is_one_chunk or alone <= by_sums:
            return SHORT
    return CHUNKS if causal else SUMS


def attend(shared: Shared, depth: Depth, values):
    """out of a depth, (batch, n, d), heads merged, of values (batch, m, d).

    Of what is as large as the values, only X and the output are kept for the gradient.
    """
    form, num_heads = shared.form, shared.queries.shape[1]

    def by_head(x):
        x = split_heads(x, num_heads)
        return chunks(x) if form == CHUNKS else x

    def joined(x, length):
        return whole(x, length) if form == CHUNKS else x

    @custom_gradient
    def attend(
        values,
        biases,
        denominators,
        weights,
        inverses,
        queries,
        keys,
        inside,
        *carriers,
    ):
        weighted = by_head(values) * weights
        attended, sums = _times(form, queries, keys, inside, weighted)
        num_queries, num_keys = ops.shape(denominators)[2], ops.shape(values)[1]
        outputs = merge_heads(joined(attended * inverses, num_queries))

        def backward(d_outputs):
            slopes = by_head(d_outputs) * inverses
            d_weighted, d_sums = _times_transposed(form, queries, keys, inside, slopes)
            d_biases = ops.sum(d_weighted * weighted, axis=-1, keepdims=True)
            d_biases = joined(d_biases, num_keys)
            sizes = (*ops.shape(outputs)[:2], num_heads, -1)
            products = ops.reshape(d_outputs * outputs, sizes)
            products = ops.einsum("bnhv->bhn", products)[..., None]
            d_denominators = -products * joined(inverses, num_queries)
            return (
                merge_heads(joined(d_weighted * weights, num_keys)),
                ops.cast(d_biases, biases.dtype),
                ops.cast(d_denominators, denominators.dtype),
                *(None, None, None, None, None),
                *(slopes, weighted, sums, d_sums),
            )

        return outputs, backward

    return attend(
        values,
        depth.biases,
        depth.denominators,
        depth.weights,
        depth.inverses,
        shared.queries,
        shared.keys,
        shared.within,
        *depth.carriers,
    )


def _times(form, queries, keys, inside, x):
    """phi(Q) phi(K)^T x over the keys that are seen, and the sums phi(K)^T x: none if
    `SHORT`, those of the chunks before if `CHUNKS`."""
    if form == SHORT:
        return ops.matmul(inside, x), x[..., :0, :]
    sums = transposed_times(keys, x)
    if form == SUMS:
        return ops.matmul(queries, sums), sums
    sums = _before(sums)
    return ops.matmul(queries, sums) + ops.matmul(inside, x), sums


def _times_transposed(form, queries, keys, inside, y):
    """phi(K) phi(Q)^T y over the queries that see a key, and the sums phi(Q)^T y, as
    `_times` has them, those of the chunks after."""
    if form == SHORT:
        return transposed_times(inside, y), y[..., :0, :]
    sums = transposed_times(queries, y)
    if form == SUMS:
        return ops.matmul(keys, sums), sums
    sums = _after(sums)
    return ops.matmul(keys, sums) + transposed_times(inside, y), sums


def chunk_size(length):
    """C, which divides a static length if there is such a size: nothing is padded."""
    if not isinstance(length, int):
        return ops.clip(length, 1, CHUNK)
    if length <= CHUNK:
        return length
    divisors = (c for c in range(CHUNK, CHUNK // 2, -1) if not length % c)
    return next(divisors, CHUNK)


def chunks(x, filler=0):
    """(batch, heads, length, size) to (batch, heads, chunks, C, size)."""
    batch, heads, length, width = ops.shape(x)
    size = chunk_size(length)
    missing = -length % size
    if not isinstance(missing, int) or missing:
        end = ops.full((batch, heads, missing, width), filler, x.dtype)
        x = ops.concatenate([x, end], axis=2)
    count = (length + size - 1) // size
    return ops.reshape(x, (batch, heads, count, size, width))


def whole(x, length):
    """Inverse of `chunks`."""
    batch, heads, count, size, width = ops.shape(x)
    return ops.reshape(x, (batch, heads, count * size, width))[:, :, :length]


def within(queries, keys, causal: bool):
    """P = phi(Q) phi(K)^T of features (..., n, f) and (..., m, f), over the keys that a
    query sees."""
    products = ops.matmul(queries, _transpose(keys))
    return ops.tril(products) if causal else products


def _before(sums):
    """For each chunk the sum over those before it, (batch, heads, chunks, f, v)."""
    return _flat(sums, earlier)


def _after(sums):
    """For each chunk the sum over those after it."""
    return _flat(sums, lambda rows: _transpose(earlier(rows)))


def earlier(x):
    """Whether a chunk (column) comes before another (row); of arrays with chunks."""
    order = ops.arange(ops.shape(x)[-2])
    return order[None, :] < order[:, None]


def _flat(sums, which):
    batch, heads, count, features, size = ops.shape(sums)
    rows = ops.reshape(sums, (batch, heads, count, features * size))
    return ops.reshape(_others(rows, which), ops.shape(sums))


def _others(rows, which):
    """For each row the sum over others, (batch, heads, count, width).

    By products, since `ops.cumsum` takes several times as long. Many rows go in
    groups, as tokens go in chunks: time stays linear.
    """
    count = ops.shape(rows)[2]
    if _is_few(count):
        return ops.matmul(ops.cast(which(rows), rows.dtype), rows)
    groups = chunks(rows)
    own = ops.matmul(ops.cast(which(groups), rows.dtype), groups)
    others = _others(ops.sum(groups, axis=3), which)
    return whole(own + others[:, :, :, None], count)


def triangles(count):
    """Of the products over so many chunks: [(rows of a product, products)]."""
    if _is_few(count):
        return [(count, 1)]
    size = chunk_size(count)
    groups = -(-count // size)
    return [(size, groups), *triangles(groups)]


def _is_few(count):
    return not isinstance(count, int) or count <= CHUNK


def transposed_times(x, y):
    """x^T y of the last two axes."""
    return ops.matmul(_transpose(x), y)


def _transpose(x):
    return ops.swapaxes(x, -1, -2)
