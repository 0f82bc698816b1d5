"""Tokens in the order of their buckets, cut into chunks that meet the chunk before.

There are several rounds of that, each with buckets of its own. Shapes in sorted order
are (batch, heads, rounds, chunks, rows, …), where rows are the tokens of a chunk. Its
columns are those of the chunk before and its own. A text that fits a chunk is one of
its own length, with columns of its own alone. Rows behind the last token are empty.

Sorting and its inverse are both lookups: no gradient has to add up at random places.
"""

from keras import ops

from models.attention.heads import transpose


def in_order(buckets, chunk, causal):
    """Sorts by bucket and position.

    Args:
      buckets: int32 (batch, heads, n, rounds).
      chunk: tokens.
      causal: whether a query meets the `chunk` keys before it in its bucket, and not
        those of its chunk and the one before.

    Returns:
      The token of each row, (…, chunks, rows), counted through all texts and heads. The
      row of each token, (batch, heads, rounds, n), counted through all rounds too. What
      `met` needs, (…, chunks, rows, rounds).
    """
    batch, heads, length, rounds = ops.shape(buckets)
    chunks, rows = _layout(length, chunk)
    # All differ, so no backend's way of sorting equal numbers matters.
    numbers = ops.swapaxes(buckets, 2, 3) * length + ops.arange(length)
    order = ops.argsort(numbers, axis=-1)
    places = ops.argsort(order, axis=-1)
    steps = ops.swapaxes(places, 2, 3)
    # Places rise with buckets, so codes of two buckets are at least the reach apart.
    codes = (steps if causal else steps // rows) + reach(chunk, causal) * buckets

    text = ops.reshape(ops.arange(batch * heads), (batch, heads, 1, 1))
    empty = ops.zeros((batch, heads, rounds, chunks * rows - length), order.dtype)
    tokens = ops.concatenate([order, empty], axis=-1) + length * text
    tokens = ops.reshape(tokens, (batch, heads, rounds, chunks, rows))
    places += chunks * rows * (rounds * text + ops.arange(rounds)[:, None])

    # Of floats, since arrays as large as K are made of them: TensorFlow has few kernels
    # for integers on a GPU.
    codes = taken(ops.cast(codes, "float32"), tokens)
    is_token = ops.reshape(ops.arange(chunks * rows) < length, (chunks, rows, 1))
    return tokens, places, ops.where(is_token, codes, -1.0 * reach(chunk, causal))


def _layout(length, chunk):
    """Chunks, and the rows of each."""
    if isinstance(length, int) and length <= chunk:
        return 1, length
    return (length + chunk - 1) // chunk, chunk


def reach(chunk, causal):
    """A query of code c meets the keys of codes from c down to c - reach + 1."""
    return chunk + 1 if causal else 2


def met(codes, reach):
    """Whether a row meets a column, and did not in an earlier round.

    Args:
      codes: of `in_order`.

    Returns:
      Bool (…, chunks, rows, columns).
    """
    columns = transpose(with_chunk_before(codes, -1.0 * reach))

    def meets(number, by):
        rows = codes[:, :, number, :, :, by : by + 1]
        steps = rows - columns[:, :, number, :, by : by + 1]
        return ops.logical_and(steps >= 0, steps < reach)

    rounds = []
    for number in range(codes.shape[2]):
        now = meets(number, number)
        for earlier in range(number):
            now = ops.logical_and(now, ops.logical_not(meets(number, earlier)))
        rounds.append(now)
    return ops.stack(rounds, axis=2)


def taken(x, places):
    """Rows of x, (…, size), which are counted through all of it."""
    return ops.take(ops.reshape(x, (-1, x.shape[-1])), places, axis=0)


def joined(x, places):
    """For each token the sum of its rows in all rounds: (batch, heads, n, size)."""
    return ops.sum(taken(x, places), axis=2)


def with_chunk_before(x, filler=0):
    """Columns of what is (…, chunks, rows, …); the first chunk has none before it."""
    if x.shape[3] == 1:
        return x
    first = ops.full_like(x[:, :, :, :1], filler)
    before = ops.concatenate([first, x[:, :, :, :-1]], axis=3)
    return ops.concatenate([before, x], axis=4)


def added_to_chunk_before(x):
    """Transposed `with_chunk_before`: adds up what falls on a row."""
    if x.shape[3] == 1:
        return x
    before, x = ops.split(x, 2, axis=4)
    last = ops.zeros_like(before[:, :, :, :1])
    return x + ops.concatenate([before[:, :, :, 1:], last], axis=3)
