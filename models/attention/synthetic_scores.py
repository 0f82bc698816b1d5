"""Scores that compare no queries with keys: learned, or made of a query alone.

Each is made of arrays, its *factors*. Those that all texts share have no batch axis.
Weights are by head and, for texts up to a length, by position.
"""

import abc
import math

import keras
from keras import ops

from common.fields import integer
from models.attention.heads import (
    num_earlier,
    transpose,
    transposed_product,
    transposed_times,
)
from models.seeds import derive_seed


class Scores(abc.ABC):
    """S, (batch, heads, n, m), or (heads, n, m) where all texts share it.

    Weights of n rows of queries are the last n of m. At first S varies by about one, as
    scores of a softmax do. S is proportional to its first factor.

    Attributes:
      fields: hyperparameters, see `common.fields`.
      needs_queries: whether it is made of queries.
    """

    fields = {}
    needs_queries = False

    @abc.abstractmethod
    def build(self, add_weight, size: int, max_length: int) -> None:
        """Makes the weights.

        Args:
          add_weight: function of a name, a shape after the heads and a deviation.
          size: of a head's queries.
          max_length: of the texts that they must serve.
        """

    def by_queries(self, queries) -> tuple:
        """The factors that are made of projected queries, differentiable as usual."""
        return ()

    def by_positions(self, num_queries, num_keys, dtype, position=None) -> tuple:
        """The factors that come after these.

        Args:
          position: of the only query, if it is not the last key's; one after all rows
            has the last.
        """
        return ()

    @abc.abstractmethod
    def make(self, *factors):
        """S."""

    @abc.abstractmethod
    def gradients(self, slopes, *factors) -> tuple:
        """Those of the factors by S's, (batch, heads, n, m), or without the batch; not
        summed over the texts. A factor that has none has None."""


class Random(Scores):
    """S = R, a learned matrix (Tay et al. 2020, "Random Synthesizer")."""

    def build(self, add_weight, size, max_length):
        self.scores = add_weight("scores", (max_length, max_length), 1)

    def by_positions(self, num_queries, num_keys, dtype, position=None):
        scores = _rows(self.scores, num_queries, num_keys, position)[:, :, :num_keys]
        return (ops.cast(scores, dtype),)

    def make(self, scores):
        return scores

    def gradients(self, slopes, scores):
        return (slopes,)


class FactorisedRandom(Scores):
    """S = R1 R2^T, of low rank ("Factorized Random Synthesizer").

    Args:
      rank: columns of R1 and R2.
    """

    fields = {"rank": integer("Of the Synthesizer's random scores.", maximum=8_192)}

    def __init__(self, rank):
        self.rank = rank

    def build(self, add_weight, size, max_length):
        shape, deviation = (max_length, self.rank), self.rank**-0.25
        self.rows = add_weight("rows", shape, deviation)
        self.columns = add_weight("columns", shape, deviation)

    def by_positions(self, num_queries, num_keys, dtype, position=None):
        rows = _rows(self.rows, num_queries, num_keys, position)
        return ops.cast(rows, dtype), ops.cast(self.columns[:, :num_keys], dtype)

    def make(self, rows, columns):
        return ops.matmul(rows, transpose(columns))

    def gradients(self, slopes, rows, columns):
        return ops.matmul(slopes, columns), transposed_times(slopes, rows)


class Dense(Scores):
    """S_i = relu(q_i) W2 + c, of a query ("Dense Synthesizer", equation 1).

    The queries are the paper's W1 x_i. As all projections here, they have no bias.
    """

    needs_queries = True

    def build(self, add_weight, size, max_length):
        self.kernel = add_weight("scores_kernel", (size, max_length), (2 / size) ** 0.5)
        self.bias = add_weight("scores_bias", (max_length,), 0)

    def by_queries(self, queries):
        """relu(Q) and, for the bias, 1."""
        hidden = ops.relu(queries)
        return (ops.concatenate([hidden, ops.ones_like(hidden[..., :1])], axis=-1),)

    def by_positions(self, num_queries, num_keys, dtype, position=None):
        kernel = ops.concatenate([self.kernel, self.bias[:, None]], axis=1)
        return (ops.cast(kernel[:, :, :num_keys], dtype),)

    def make(self, hidden, kernel):
        return ops.matmul(hidden, kernel)

    def gradients(self, slopes, hidden, kernel):
        return ops.matmul(slopes, transpose(kernel)), transposed_product(hidden, slopes)


class FactorisedDense(Scores):
    """S_ij = a_i[j // B] b_i[j % B], of a query ("Factorized Dense Synthesizer").

    a_i and b_i are relu(q_i) W + c, of A and B numbers. One is repeated and the other
    tiled. A B is `max_length` where it has divisors near its root; otherwise the last
    scores are left out, which takes as long as making them.
    """

    needs_queries = True

    def build(self, add_weight, size, max_length):
        root = math.isqrt(max_length - 1) + 1
        divisors = (x for x in range(root, 2 * root) if not max_length % x)
        self.period = next(divisors, root)
        sizes = {"a": -(-max_length // self.period), "b": self.period}
        self.sizes = tuple(sizes.values())
        self.layers = [
            (
                add_weight(f"{name}_kernel", (size, count), (2 / size) ** 0.5),
                add_weight(f"{name}_bias", (count,), 0),
            )
            for name, count in sizes.items()
        ]

    def by_queries(self, queries):
        hidden = ops.relu(queries)
        return tuple(
            ops.matmul(hidden, ops.cast(kernel, hidden.dtype))
            + ops.cast(bias, hidden.dtype)[:, None]
            for kernel, bias in self.layers
        )

    def by_positions(self, num_queries, num_keys, dtype, position=None):
        """The keys' positions: nothing else says how many they are."""
        return (ops.arange(num_keys, dtype="int32"),)

    def make(self, a, b, positions):
        num_keys = ops.shape(positions)[0]
        a = a[..., : self._periods(num_keys)]
        scores = a[..., :, None] * b[..., None, :]
        return ops.reshape(scores, (*ops.shape(a)[:-1], -1))[..., :num_keys]

    def gradients(self, slopes, a, b, positions):
        num_keys = ops.shape(positions)[0]
        periods = self._periods(num_keys)
        slopes = _with_zeros(slopes, periods * self.period - num_keys)
        shape = ops.shape(slopes)
        slopes = ops.reshape(slopes, (*shape[:-1], periods, self.period))
        by_a = ops.einsum("bhnij,bhnj->bhni", slopes, b)
        by_a = _with_zeros(by_a, self.sizes[0] - periods)
        by_b = ops.einsum("bhnij,bhni->bhnj", slopes, a[..., :periods])
        return by_a, by_b, None

    def _periods(self, num_keys):
        return (num_keys + self.period - 1) // self.period


SCORES: dict[str, type[Scores]] = {
    "random": Random,
    "factorised-random": FactorisedRandom,
    "dense": Dense,
    "factorised-dense": FactorisedDense,
}


def weights_of(layer, num_heads: int, seed: int):
    """The `add_weight` of `Scores.build`: weights of a layer, normally distributed."""

    def add_weight(name, shape, deviation):
        normal = keras.initializers.RandomNormal(0, deviation, derive_seed(seed, name))
        return layer.add_weight(
            name=name,
            shape=(num_heads, *shape),
            initializer=normal if deviation else "zeros",
        )

    return add_weight


def _rows(weight, num_queries, num_keys, position):
    """Of the first num_keys rows of (heads, max_length, …) the last num_queries, or the
    one at a position."""
    if position is not None:
        place = ops.minimum(ops.reshape(position, (1,)), weight.shape[1] - 1)
        return ops.take(weight, place, axis=1)
    return weight[:, num_earlier(num_queries, num_keys) : num_keys]


def _with_zeros(x, count):
    """So many zeros after the last axis."""
    if isinstance(count, int) and not count:
        return x
    return ops.concatenate([x, ops.zeros((*ops.shape(x)[:-1], count), x.dtype)], -1)
