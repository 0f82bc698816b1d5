"""The delta rule in chunks beside its rule position by position."""

from collections.abc import Iterator

import keras
import tensorflow as tf
from keras import ops

from benchmarks.timing import interleave, speedup, summary
from models.attention import reading
from models.attention.delta import DeltaOperator

# One text of the small configuration.
HEADS, SIZE = 8, 32
CHUNKS, POSITIONS = "in chunks", "position by position"


def measure(lengths: list[int], rounds: int = 5, xla: bool = False) -> Iterator[dict]:
    """Times both forms by turns, without and with gradients of all that they take.

    Both are given the features of queries and keys, the strengths and the values of one
    text, and give the same.

    Args:
      xla: whether XLA compiles both.
    """
    for length in lengths:
        given = _draw(length)
        for mode, function in (("inference", lambda order: order), ("train", _trained)):
            calls = {
                name: _compiled(function(order), given, xla)
                for name, order in ((CHUNKS, in_chunks), (POSITIONS, by_positions))
            }
            seconds = interleave(calls, rounds, f"{mode}, {length} tokens")
            for name in calls:
                yield {
                    "benchmark": "scan",
                    "order": name,
                    "mode": mode,
                    "length": length,
                    "xla": xla,
                    **summary(seconds[name], 5),
                    "speedup": round(speedup(seconds, name, POSITIONS), 2),
                }


def in_chunks(queries, keys, strengths, values):
    """What each position reads, as large as the values, by `DeltaOperator`.

    Args:
      queries, keys: features, (1, heads, n, f).
      strengths: β, (1, heads, n, 1).
      values: (1, n, heads · size), as a layer has them.
    """
    operator = DeltaOperator(HEADS, "causal", 0, feature_map="elu1", largest_strength=1)
    length = ops.shape(queries)[2]
    inputs = queries, keys, strengths
    biases = ops.zeros_like(strengths)
    state = reading.start(operator, inputs, biases, None, length, SIZE)
    return state.read(0, values)


def by_positions(*given):
    """Gives what `in_chunks` gives, by equations 20 to 25 of Schlag et al. 2021."""

    *by_head, values = given
    length = values.shape[1]
    arrays = [ops.transpose(x[0], (1, 0, 2)) for x in by_head]
    arrays.append(ops.reshape(values, (length, HEADS, SIZE)))

    def correct(i, memory, reads):
        query, key, strength, value = (x[i] for x in arrays)
        written = strength * (value - ops.einsum("hf,hfv->hv", key, memory))
        memory = memory + key[:, :, None] * written[:, None]
        return i + 1, memory, reads.write(i, ops.einsum("hf,hfv->hv", query, memory))

    memory = ops.zeros((HEADS, by_head[1].shape[-1], SIZE))
    reads = tf.TensorArray("float32", length, element_shape=(HEADS, SIZE))
    _, _, reads = tf.while_loop(
        lambda i, *_: i < length,
        correct,
        (0, memory, reads),
        maximum_iterations=length,  # without it XLA has no gradient
    )
    return ops.reshape(reads.stack(), values.shape)


def _draw(length):
    keras.utils.set_random_seed(0)
    queries, keys = (
        ops.softmax(keras.random.normal((1, HEADS, length, SIZE))) for _ in range(2)
    )
    strengths = ops.sigmoid(keras.random.normal((1, HEADS, length, 1)))
    return queries, keys, strengths, keras.random.normal((1, length, HEADS * SIZE))


def _trained(order):
    def gradients(*given):
        with tf.GradientTape() as tape:
            tape.watch(given)
            total = ops.sum(ops.square(order(*given)))
        return tape.gradient(total, given)

    return gradients


def _compiled(function, given, xla):
    """Returns a function that has computed when it returns."""
    compiled = tf.function(function, jit_compile=xla)

    def call():
        return [x.numpy() for x in tf.nest.flatten(compiled(*given))]

    return call
