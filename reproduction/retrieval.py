"""How many pairs of keys and values an attention's memory holds (Schlag, Irie and
Schmidhuber 2021, section 6.1).

A model sees a sequence of pairs, then a key, and is to give that key's latest value, a
one-hot vector. Setting 1: each of S keys comes once. Setting 2: 2S pairs are drawn with
replacement, so a key's value changes; evaluation has S pairs. The loss is half the
squared error: 0.5 if nothing is read.

Inputs, first weights and reads are those of the authors' code, in the folder
`synthetic` of github.com/ischlag/fast-weight-transformers, but for the draws of FAVOR+:
theirs are new at each pass, and ours go through 256.
"""

import math
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from configs.published import RETRIEVAL, RETRIEVAL_SYMBOLS
from models.attention import OPERATORS, reading
from models.attention.heads import masked, transpose
from models.seeds import derive_seed
from reproduction.drawn_updates import drawn_updates

KEY_SIZE = 64
# Symbols have embeddings of so many times their number.
WIDTH_PER_SYMBOL = 2.2
# The authors add it to what they divide by.
EPSILON = 1e-6
EVALUATE_EVERY, PATIENCE, SOLVED, MAX_STEPS = 100, 11, 1e-3, 100_000
EVALUATION_SEQUENCES, MAX_QUERIES = 20, 200


class Memory(NamedTuple):
    """What is compared.

    Attributes:
      attention: the `attention` part of a config.
      learning_rate: of Adam.
      batch_size: sequences of an update.
      is_bounded: whether the rule is an earlier one of the authors, see `bounded`.
    """

    attention: dict
    learning_rate: float = 1e-3
    batch_size: int = 32
    is_bounded: bool = False


def _favor(draws):
    """Of each draw there are two features."""
    return {
        "feature_map": "favor",
        "num_features": 2 * draws,
        "orthogonal": True,
        "redraw_every": 1,
        "kernel": "softmax",
        "paired": True,
    }


def _dpfp(nu):
    return {"feature_map": "dpfp", "nu": nu}


ELU, TANH = {"feature_map": "elu1"}, {"feature_map": "tanh"}
SUM = {"name": "linear"}
DELTA = {"name": "delta", "largest_strength": 1}
BOUNDED = {**DELTA, "sum_normalisation": False}
# By setting, those of figure 2, and of figures 3 and 5.
MEMORIES = {
    1: {
        "softmax": Memory({"name": "softmax"}),
        "linear": Memory({**SUM, **ELU}),
        **{f"dpfp-{nu}": Memory({**SUM, **_dpfp(nu)}) for nu in (1, 2, 3)},
        **{f"favor-{m}": Memory({**SUM, **_favor(m)}) for m in (64, 128, 512)},
    },
    2: {
        "dpfp-1-sum": Memory({**SUM, **_dpfp(1)}),
        "linear-delta": Memory({**DELTA, **ELU}),
        **{f"dpfp-{nu}-delta": Memory({**DELTA, **_dpfp(nu)}) for nu in (1, 2)},
        **{f"favor-{m}-delta": Memory({**DELTA, **_favor(m)}) for m in (64, 128)},
        "dpfp-1-bounded": Memory({**BOUNDED, **_dpfp(1)}, is_bounded=True),
        "tanh-bounded": Memory({**BOUNDED, **TANH}, 1e-4, 128, is_bounded=True),
    },
}


class Retrieval(keras.layers.Layer):
    """Keys, queries and values of symbols, and an operator that is read once.

    Keys are projected from the one-hot value and the key's embedding together, and so
    are the strengths of the delta rule; queries from the embedding of their key. The
    values are one-hot. First weights are the authors' code's.

    Args:
      memory: one of `MEMORIES`.
      symbols: S, keys, and as many values.
      seed: of the weights and of what the operator draws.
    """

    # Of `Operator.build`: strengths are projected here, and not once more there.
    hidden_dim = 1
    max_length = None

    def __init__(self, memory, symbols, seed=0):
        super().__init__()
        self.memory = memory
        hyperparameters = dict(memory.attention)
        kind = OPERATORS[hyperparameters.pop("name")]
        self.operator = kind(
            1, "causal", derive_seed(seed, "operator"), **hyperparameters
        )
        self.operator.build(self, KEY_SIZE)
        if memory.attention["name"] == "delta":
            self.operator.strength_kernel.assign([[1]])
            self.operator.strength_kernel.trainable = False
        self.symbols, self.seed = symbols, seed
        width = int(WIDTH_PER_SYMBOL * symbols)
        normal = keras.initializers.RandomNormal(0, 1, derive_seed(seed, "embedding"))
        self.embedding = self.add_weight(
            name="embedding", shape=(symbols, width), initializer=normal
        )
        self.adds_epsilon = memory.attention.get("feature_map") == "favor"
        is_softmax = memory.attention["name"] == "softmax"
        self.scale = KEY_SIZE**-0.5 if is_softmax else 1.0

        def bound(inputs):
            return (6 / (inputs + KEY_SIZE)) ** 0.5 if is_softmax else KEY_SIZE**-0.5

        pair = symbols + width
        self.key = self._projection("key", pair, KEY_SIZE, bound(pair))
        self.query = self._projection("query", width, KEY_SIZE, bound(width))
        self.strength = self._projection("strength", pair, 1, pair**-0.5)

    def _projection(self, name, inputs, outputs, bound):
        """A kernel between -`bound` and `bound`, and a bias."""
        weights = {
            "kernel": ((inputs, outputs), bound),
            "bias": ((outputs,), inputs**-0.5),
        }
        return [
            self.add_weight(
                name=f"{name}_{part}",
                shape=shape,
                initializer=keras.initializers.RandomUniform(
                    -largest, largest, derive_seed(self.seed, f"{name}_{part}")
                ),
            )
            for part, (shape, largest) in weights.items()
        ]

    def call(self, keys, values, queries, training=None):
        """What each query finds, (batch, n, S).

        Args:
          keys, values: int32 (batch, m).
          queries: int32 (batch, n), each after all pairs.
        """
        operator, count = self.operator, queries.shape[1]
        pairs, query_vectors = self._projected(keys, values, queries)
        # Queries are causal: padding stands where they are.
        pairs = ops.pad(pairs, [[0, 0], [0, count], [0, 0]])
        values = ops.pad(values, [[0, 0], [0, count]], constant_values=-1)
        one_hot_values = ops.one_hot(values, self.symbols)  # zeros at the padding
        length = pairs.shape[1]
        mask = ops.broadcast_to(ops.arange(length) < length - count, pairs.shape[:2])
        key_vectors, context = ops.split(pairs, [KEY_SIZE], axis=-1)
        further = operator.further_inputs(context[:, -count:], context, mask, training)
        query_vectors, key_vectors = query_vectors[:, None], key_vectors[:, None]
        of_queries = operator.prepare_queries(query_vectors, self.scale)
        features, logs = operator.prepare_keys(key_vectors, self.scale, mask)
        if self.memory.is_bounded:
            of_pairs = (features, *further, one_hot_values[:, None])
            of_pairs = (x[:, 0, : length - count] for x in of_pairs)
            return bounded(of_queries[:, 0], *of_pairs)
        biases = ops.zeros_like(features[..., :1]) if logs is None else logs
        state = reading.start(
            operator,
            operator.inputs(of_queries, features, further),
            masked(biases, mask),
            mask,
            count,
            self.symbols,
        )
        answers = state.read(0, one_hot_values)
        if self.adds_epsilon:
            # Other maps have sums beside which so little is nothing.
            log_sum = self._log_sum(query_vectors, features, logs, mask)
            answers *= ops.sigmoid(log_sum - math.log(EPSILON))[:, 0]
        if training:
            operator.count_pass()
        return answers

    def _projected(self, keys, values, queries):
        """Vectors of pairs, (batch, m, KEY_SIZE + 1), whose last number is of the
        strength, and of queries, (batch, n, KEY_SIZE)."""
        # Projected before they are looked up: there are fewer symbols than pairs.
        kernel, bias = (
            ops.concatenate(parts, axis=-1)
            for parts in zip(self.key, self.strength, strict=True)
        )
        of_values, of_keys = ops.split(kernel, [self.symbols], axis=0)
        pairs = ops.take(of_values + bias, values, axis=0)
        pairs += ops.take(ops.matmul(self.embedding, of_keys), keys, axis=0)
        kernel, bias = self.query
        symbols = ops.matmul(self.embedding, kernel) + bias
        return pairs, ops.take(symbols, queries, axis=0)

    def _log_sum(self, queries, keys, logs, mask):
        """The logarithm of what a read is divided by, (batch, 1, n, 1), of features of
        keys and the logarithms of their factors."""
        queries, of_queries = self.operator.feature_map.keys(queries)
        if logs is None:  # of the delta rule, by whose sums keys are divided before
            return of_queries + ops.log(ops.sum(queries, axis=-1, keepdims=True))
        products = ops.log(ops.matmul(queries, transpose(keys)))
        products += transpose(masked(logs, mask))
        return of_queries + ops.logsumexp(products, axis=-1, keepdims=True)


def bounded(queries, keys, strengths, values):
    """What queries find, (batch, n, S), by the rule of Schlag, Munkhdalai and
    Schmidhuber 2021, as the authors wrote it for these figures.

    It is the delta rule, whose state is divided by its norm, where that is above 1,
    after each pair but the first. What is read is normalised as by a LayerNorm.

    Args:
      queries, keys: features, (batch, n, f) and (batch, m, f).
      strengths, values: (batch, m, 1) and (batch, m, S).
    """

    def write(state, pair):
        key, strength, value = pair
        value -= tf.einsum("bvf,bf->bv", state, key)
        state += tf.einsum("bv,bf->bvf", strength * value, key)
        return state / tf.maximum(tf.norm(state, axis=(1, 2), keepdims=True), 1)

    pairs = [tf.transpose(x, (1, 0, 2)) for x in (keys, strengths, values)]
    key, strength, value = (x[0] for x in pairs)
    first = tf.einsum("bv,bf->bvf", strength * value, key)
    state = tf.foldl(write, [x[1:] for x in pairs], first)
    read = tf.einsum("bvf,bnf->bnv", state, queries)
    mean, variance = tf.nn.moments(read, axes=-1, keepdims=True)
    return (read - mean) * tf.math.rsqrt(variance + 1e-5)


def sequences(setting: int, symbols: int, batch_size: int, training: bool, seed):
    """Keys and values, int32 (batch, m) each.

    Args:
      seed: of two integers.
    """
    if setting == 1:
        shape = (2, batch_size, symbols)
        numbers = tf.argsort(tf.random.stateless_uniform(shape, seed), axis=-1)
    else:
        shape = (2, batch_size, symbols * (2 if training else 1))
        numbers = tf.random.stateless_uniform(shape, seed, 0, symbols, tf.int32)
    return tf.unstack(numbers)


def loss(model, keys, values, queries, training=None):
    """Half the squared error of each query, (batch, n), and which occur as keys."""
    places = tf.range(1, keys.shape[1] + 1)
    latest = tf.where(queries[..., None] == keys[:, None], places, 0)
    latest = tf.reduce_max(latest, axis=-1)
    targets = tf.gather(values, tf.maximum(latest - 1, 0), axis=1, batch_dims=1)
    answers = model(keys, values, queries, training=training)
    errors = tf.square(answers - tf.one_hot(targets, model.symbols))
    return tf.reduce_sum(errors, axis=-1) / 2, latest > 0


def train(memory: Memory, setting: int, symbols: int, seed: int = 0) -> dict:
    """Trains until it is solved, or `PATIENCE` evaluations in a row were no better.

    Args:
      seed: of first weights and sequences.

    Returns:
      `loss`, the least of the evaluations, None where none was finite, and `steps`.
    """
    batch_size = memory.batch_size
    model = Retrieval(memory, symbols, seed)
    # Of the keys and the queries of updates, and of those of evaluations.
    drawn = range(10 * seed + 1, 10 * seed + 5)
    num_queries = min(symbols, MAX_QUERIES)

    def draw(step):
        keys, values = sequences(setting, symbols, batch_size, True, [drawn[0], step])
        asked = tf.random.stateless_uniform(
            [batch_size, 1], [drawn[1], step], 0, keys.shape[1], tf.int32
        )
        return keys, values, tf.gather(keys, asked, axis=1, batch_dims=1)

    @tf.function
    def evaluate(step):
        count = EVALUATION_SEQUENCES
        keys, values = sequences(setting, symbols, count, False, [drawn[2], step])
        order = tf.random.stateless_uniform([count, symbols], [drawn[3], step])
        order = tf.argsort(order)
        errors, real = loss(model, keys, values, order[:, :num_queries])
        return tf.reduce_mean(tf.boolean_mask(errors, real))

    updates = drawn_updates(
        model,
        memory.learning_rate,
        loss,
        draw,
        # XLA takes a third of the time here. FAVOR+ would be slower with it, and so
        # would the delta rule with many keys.
        jit_compile=memory.is_bounded,
    )
    best, best_at, step = np.inf, 0, 0
    patience = PATIENCE * EVALUATE_EVERY
    while best >= SOLVED and step - best_at < patience and step < MAX_STEPS:
        updates(step, step + EVALUATE_EVERY)
        step += EVALUATE_EVERY
        error = float(evaluate(tf.constant(step)))
        if error < best:
            best, best_at = error, step
        if not np.isfinite(error):
            break
    return {"loss": best if np.isfinite(best) else None, "steps": step}


def published(setting: int, name: str) -> dict[int, float | None]:
    """{number of symbols: loss} of a memory of `MEMORIES[setting]`."""
    return dict(zip(RETRIEVAL_SYMBOLS, RETRIEVAL[setting][name], strict=False))


def row(setting: int, name: str, symbols: int) -> dict:
    """Trains a memory of `MEMORIES[setting]` on so many symbols.

    Returns:
      What it was, its loss and steps as `train` has them, and the published loss, or
      None.
    """
    return {
        "setting": setting,
        "memory": name,
        "symbols": symbols,
        **train(MEMORIES[setting][name], setting, symbols),
        "published": published(setting, name).get(symbols),
    }
