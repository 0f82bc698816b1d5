"""Attention with phi(q) . phi(k) for weights, in time linear in the length.

    out_i = phi(q_i) S / (phi(q_i) z),    [S, z] = sum_j e^(b_j) phi(k_j) [V_j, 1]

over all keys j or, causally, over j <= i. Shapes by head: queries n, keys m, features
f, values v, depths L. docs/attention.md, "Linear form", derives all of it.

The fast evaluation takes e^(b_j - max b) for weights. It serves while no row's
denominator comes near zero; otherwise every depth takes the safe one.
"""

from typing import Any, NamedTuple

from keras import ops

from models.attention import linear_fast, linear_safe
from models.attention.heads import merge_heads, num_earlier, split_heads
from models.attention.linear_fast import CHUNKS, SHORT, SUMS
from models.attention.linear_safe import FLOOR, Keys, largest
from models.products import Product, with_gradients

# A row's denominator, of weights up to 1, under which smaller weights of it might have
# been lost. The square of its inverse, which the gradient has, is still finite.
SMALL = 1e-15


class LinearState(NamedTuple):
    """What one block's depths share.

    Attributes:
      causal: whether a query sees no keys after it.
      num_queries: causal ones, where they may be fewer than keys; None where not.
      shared: `linear_fast.Shared`.
      depths: {depth: `linear_fast.Depth`}. Each attends once and takes its own out:
        used twice, the factors that it hands back would add up before they multiply.
      features: {"queries": phi(q), "keys": phi(k)}, (batch, heads, length, f), for the
        safe evaluation. A depth hands them on to the next. If all took the same ones,
        the backward pass would add up zeros of each depth that took the fast one.
      sound: scalar, whether the fast evaluation serves.
    """

    causal: bool
    num_queries: Any
    shared: Any
    depths: dict
    features: dict
    sound: Any


def start(
    queries, keys: Keys, causal: bool, size: int, num_queries=None
) -> LinearState:
    """What the depths share, for values of a size.

    Args:
      num_queries: where causal queries may be fewer than keys, how many: they are at
        the last of the keys' positions.
    """
    biases = keys.biases
    if not causal:
        num_queries = None
    if num_queries is not None:
        # Queries without features at the positions before see nothing.
        batch, heads, _, features = ops.shape(queries)
        earlier = num_earlier(num_queries, ops.shape(biases)[2])
        before = ops.zeros((batch, heads, earlier, features), queries.dtype)
        queries = ops.concatenate([before, queries], axis=2)
    num_depths = biases.shape[-1]
    weights = ops.exp(biases - largest(biases, axis=2))
    # One more column counts the keys that are seen: where there are none, the
    # denominators are zero for good.
    seen = ops.cast(biases[..., :1] > FLOOR, weights.dtype)
    columns = ops.cast(ops.concatenate([weights, seen], axis=-1), queries.dtype)
    shared, totals, carriers = linear_fast.share(
        queries, keys.features, columns, causal, num_depths, size
    )
    totals = ops.cast(totals, "float32")
    denominators, counts = totals[..., :num_depths], totals[..., num_depths:]
    sound = ops.logical_or(denominators > SMALL, counts <= 0)
    nothing = denominators <= SMALL  # or not sound, and then not used
    inverses = ops.where(nothing, 0.0, 1 / ops.where(nothing, 1.0, denominators))
    constants = columns[..., :num_depths], ops.cast(inverses, queries.dtype)
    if shared.form == CHUNKS:
        constants = map(linear_fast.chunks, constants)
    constants = map(ops.stop_gradient, constants)
    columns = (
        ops.split(x, num_depths, axis=-1) for x in (biases, denominators, *constants)
    )
    depths = dict(enumerate(map(linear_fast.Depth, *columns, carriers)))
    features = {"queries": queries, "keys": keys.features}
    sound = ops.stop_gradient(ops.all(sound))
    return LinearState(causal, num_queries, shared, depths, features, sound)


def attend(state: LinearState, depth: int, values):
    """What a depth attends: (batch, n, d), heads merged, of values (batch, m, d).

    Raises:
      ValueError: if this depth has attended before.
    """
    if depth not in state.depths:
        raise ValueError(
            f"depth {depth} has attended before: expected once for each state"
        )
    own = state.depths.pop(depth)
    queries, features = state.features["queries"], state.features["keys"]

    def fast():
        return linear_fast.attend(state.shared, own, values), queries, features

    def safe():
        by_head = split_heads(values, queries.shape[1])
        keys = Keys(features, own.biases)
        attended = linear_safe.attend(queries, keys, by_head, state.causal)
        return merge_heads(ops.cast(attended, values.dtype)), queries, features

    attended, queries, features = ops.cond(state.sound, fast, safe)
    state.features.update(queries=queries, keys=features)
    if state.num_queries is not None:
        attended = attended[:, ops.shape(attended)[1] - state.num_queries :]
    return attended


def products(units, length, features, size, depths, causal) -> list[Product]:
    """Matrix products of the fast evaluation, see `models.products`.

    Args:
      units: of batch and heads together.
    """
    # Those of all depths' denominators have a column a depth and one more.
    columns = [("", depths, size), ("sums: ", 1, depths + 1)]
    width = sum(calls * own for _, calls, own in columns)
    form = linear_fast.form_of(length, length, features, width, causal)
    chunk = length if form == SHORT else linear_fast.chunk_size(length)
    count = -(-length // chunk)
    found = []
    for name, calls, own in columns:
        if form != SHORT:
            times = (features, length, own)
            found += with_gradients(
                f"{name}keys times values", calls, units, times, "left"
            )
            times = (length, features, own)
            found += with_gradients(f"{name}queries times sums", calls, units, times)
        if form != SUMS:
            times = (chunk, chunk, own)
            found += with_gradients(f"{name}within chunks", calls, units * count, times)
        if form == CHUNKS:
            # Which chunks come before is no variable: one gradient.
            for rows, groups in linear_fast.triangles(count):
                times = (rows, rows, features * own)
                before = with_gradients("chunks before", calls, units * groups, times)
                found += before[::2]
    if form != SUMS:
        times = (chunk, features, chunk)
        found += with_gradients("chunks", 1, units * count, times, "right")
    return found
