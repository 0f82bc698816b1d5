"""States that pass through the chunks of a text, each by a matrix of its own.

    S_0 = 0,   S_(c+1) = A_c S_c + g_c

for chunks c, with A_c (f, f) and g_c (f, columns) a head. The products of neighbouring
A are made once, over 2 chunks, 4, 8 and so on: `steps`. Each g goes up and down that
tree. So time is linear in the number of chunks, and nothing loops over them.
"""

from keras import ops

from models.attention.heads import transpose, transposed_product


def steps(transitions) -> list:
    """What the functions below need of A, (batch, heads, chunks, f, f).

    Returns:
      Of each level of the tree, A of its even and of its odd nodes; or A alone, where
      the number of chunks is not known before it runs.
    """
    count = ops.shape(transitions)[2]
    if not isinstance(count, int):
        return [transitions]
    levels = []
    while count > 2:
        even, odd = _pairs(transitions)
        levels += [even, odd]
        transitions = ops.matmul(odd, even)
        count = (count + 1) // 2
    return levels


def states_before(levels, x):
    """S_c of each chunk, of g (batch, heads, chunks, f, columns)."""
    count = ops.shape(x)[2]
    if not isinstance(count, int):
        return _looped(*levels, x)
    if count <= 2:
        return ops.concatenate([ops.zeros_like(x[:, :, :1]), x[:, :, :-1]], axis=2)
    (even_step, odd_step, *above), (even, odd) = levels, _pairs(x)
    at_even = states_before(above, ops.matmul(odd_step, even) + odd)
    at_odd = ops.matmul(even_step, at_even) + even
    return _interleaved(at_even, at_odd, count)


def states_after(levels, x):
    """R_c of each chunk, with R = 0 at the last and R_(c-1) = A_c^T R_c + x_c."""
    count = ops.shape(x)[2]
    if not isinstance(count, int):
        (transitions,) = levels
        reverse = transpose(ops.flip(transitions, axis=2))
        return ops.flip(_looped(reverse, ops.flip(x, axis=2)), axis=2)
    if count <= 2:
        return ops.concatenate([x[:, :, 1:], ops.zeros_like(x[:, :, :1])], axis=2)
    (even_step, odd_step, *above), (even, odd) = levels, _pairs(x)
    at_odd = states_after(above, even + transposed_product(even_step, odd))
    at_even = transposed_product(odd_step, at_odd) + odd
    return _interleaved(at_even, at_odd, count)


def _pairs(x):
    """Those of even and of odd chunks, as many, the last one maybe of zeros."""
    if ops.shape(x)[2] % 2:
        x = ops.concatenate([x, ops.zeros_like(x[:, :, :1])], axis=2)
    batch, heads, _, *sizes = ops.shape(x)
    # TensorFlow takes every other one far more slowly, by x[:, :, ::2].
    return ops.unstack(ops.reshape(x, (batch, heads, -1, 2, *sizes)), axis=3)


def _interleaved(even, odd, count):
    batch, heads, pairs, *sizes = ops.shape(even)
    both = ops.reshape(ops.stack([even, odd], axis=3), (batch, heads, -1, *sizes))
    return both[:, :, :count]


def _looped(transitions, x):
    """Gives `states_before` by sums over 1, 2, 4 … chunks before each."""
    places = ops.arange(ops.shape(x)[2])

    def earlier(x, distance):
        taken = ops.take(x, ops.maximum(places - distance, 0), axis=2)
        return ops.where(
            (places >= distance)[:, None, None], taken, ops.zeros_like(taken)
        )

    def double(distance, transitions, x):
        x = ops.matmul(transitions, earlier(x, distance)) + x
        transitions = ops.matmul(transitions, earlier(transitions, distance))
        return 2 * distance, transitions, x

    _, _, x = ops.while_loop(
        lambda distance, *_: distance < ops.shape(places)[0],
        double,
        (ops.convert_to_tensor(1), transitions, x),
    )
    return earlier(x, 1)
