"""Relative positions: scores that queries and keys have for their distance."""

import abc

import keras
import numpy as np
from keras import ops

from models.attention.rotary import sines_and_cosines
from models.gradients import custom_gradient
from models.seeds import derive_seed

# For Shaw et al. 2018 (section 4.3) it makes no difference from 2 to 256.
FARTHEST = 16


class RelativePositions(abc.ABC):
    """What is added to scores, by the distance j - i of key j and query i.

    Distances are cut to -`farthest` … `farthest`, or to -`farthest` … 0 causally, so
    any length is served. A query has a number for each of these distances.

    Class attributes:
      is_shared: whether all queries of a head have the same numbers.
      farthest: all distances from here on count as one.

    Args:
      num_heads: H.
      causal: whether no key comes after its query.
      seed: of the initial weights.
    """

    is_shared = False
    farthest = FARTHEST

    def __init__(self, num_heads, causal, seed):
        self.num_heads = num_heads
        self.causal = causal
        self.seed = seed

    @property
    def num_distances(self) -> int:
        return self.farthest + 1 if self.causal else 2 * self.farthest + 1

    @abc.abstractmethod
    def build(self, layer, size) -> None:
        """Makes the weights of a layer whose heads have queries of `size` numbers."""

    def queries(self, queries):
        """The queries that meet keys; `numbers` takes them as they were before."""
        return queries

    @abc.abstractmethod
    def numbers(self, queries):
        """By distance, (batch, heads, n, distances), or (1, heads, 1, distances) where
        they are shared; differentiable as usual.

        Args:
          queries: scaled, (batch, heads, n, size).
        """

    def add(self, scores, numbers, start):
        """Scores of rows of queries and columns of keys, with what is added.

        Args:
          scores: (batch, heads, …, rows, columns).
          numbers: laid out alike, (…, rows, distances), unless they are shared.
          start: position of the first column less that of the first row.
        """
        *_, num_rows, num_columns = ops.shape(scores)
        places = self._places(_distances(num_rows, num_columns, start))

        @custom_gradient
        def spread(numbers):
            # Automatic differentiation would add up at places, number by number.
            def backward(slopes):
                return self.gradient(slopes, start)

            return self._taken(numbers, places, len(scores.shape)), backward

        return scores + spread(numbers)

    def gradient(self, slopes, start):
        """That of the numbers, laid out as in `add`, by the gradient of scores."""
        if not self.is_shared:
            return self._by_distance(slopes, start)
        groups = tuple(range(2, len(slopes.shape) - 2))
        total = ops.sum(slopes, axis=(0, *groups))
        total = ops.cast(self._by_distance(total, start), "float32")
        return ops.cast(ops.sum(total, axis=1), slopes.dtype)[None, :, None]

    def of_step(self, numbers, distances):
        """What is added in decoding, (batch or 1, heads, beams or 1, slots).

        Args:
          distances: of the slots, (slots,).
        """
        return ops.take(numbers, self._places(distances), axis=-1)

    def _places(self, distances):
        return ops.clip(distances + self.farthest, 0, self.num_distances - 1)

    def _taken(self, numbers, places, rank):
        if self.is_shared:
            taken = ops.take(numbers[:, :, 0], places, axis=-1)
            return ops.expand_dims(taken, tuple(range(2, rank - 2)))
        *outer, num_rows, count = ops.shape(numbers)
        flat = ops.reshape(numbers, (*outer, num_rows * count))
        return ops.take(flat, places + count * ops.arange(num_rows)[:, None], axis=-1)

    def _by_distance(self, x, start):
        """Sums of (…, rows, columns) by distance: (…, rows, distances)."""
        *outer, num_rows, num_columns = ops.shape(x)
        distances = _distances(num_rows, num_columns, start)
        last = self.num_distances - 1 - self.farthest

        def total(counted):
            return ops.sum(x * ops.cast(counted, x.dtype), axis=-1, keepdims=True)

        rows = ops.arange(num_rows)[:, None]
        columns = ops.arange(1 - self.farthest, last) - start + rows
        exist = ops.logical_and(columns >= 0, columns < num_columns)
        places = ops.where(exist, columns, 0) + num_columns * rows
        flat = ops.reshape(x, (*outer, num_rows * num_columns))
        between = ops.take(flat, places, axis=-1) * ops.cast(exist, x.dtype)
        ends = total(distances <= -self.farthest), total(distances >= last)
        return ops.concatenate([ends[0], between, ends[1]], axis=-1)


class RelativeBias(RelativePositions):
    """A_ij + r_h(j - i), a learned number for each head and distance.

    That is the relative bias of T5 (Raffel et al. 2020, section 2.1) in its simplest
    form: distances are cut, and lie in no buckets. Each layer, or block of TransEvolve,
    has numbers of its own, which are 0 at first.
    """

    is_shared = True

    def build(self, layer, size):
        shape = (self.num_heads, self.num_distances)
        self.weight = layer.add_weight(
            name="relative_bias", shape=shape, initializer="zeros"
        )

    def numbers(self, queries):
        return ops.cast(self.weight, queries.dtype)[None, :, None]


class RelativeKeys(RelativePositions):
    """q_i · (k_j + a(j - i)), a learned vector for each distance, shared by the heads.

    These are the relative keys of Shaw et al. 2018 (equation 4), without their relative
    values: what is attended is a product of weights and values, as of any operator.
    """

    def build(self, layer, size):
        self.weight = layer.add_weight(
            name="relative_keys",
            shape=(self.num_distances, size),
            initializer=keras.initializers.GlorotUniform(
                derive_seed(self.seed, "relative_keys")
            ),
        )

    def numbers(self, queries):
        return ops.matmul(queries, ops.transpose(ops.cast(self.weight, queries.dtype)))


class RelativeSinusoids(RelativePositions):
    """(q_i + u) · k_j + (q_i + v) · W r(j - i), r a vector of sines and cosines.

    That is how Transformer-XL has it (Dai et al. 2019, section 3.3): each head learns
    u, v and W. u and v are added to scaled queries, and are 0 at first. Distances are
    told apart up to twice the longest text, since a memory may be as long as a text.

    Raises:
      ValueError: if the layer knows no longest text.
    """

    def build(self, layer, size):
        if layer.max_length is None:
            raise ValueError("relative-sinusoids need a max_length, got None")
        self.farthest = 2 * layer.max_length
        width = self.num_heads * size
        self.kernel = layer.add_weight(
            name="relative_kernel",
            shape=(width, width),
            initializer=keras.initializers.GlorotUniform(
                derive_seed(self.seed, "relative_kernel")
            ),
        )
        self.query_biases = [
            layer.add_weight(
                name=f"relative_{name}_bias",
                shape=(self.num_heads, 1, size),
                initializer="zeros",
            )
            for name in ("key", "distance")
        ]

    def queries(self, queries):
        return queries + ops.cast(self.query_biases[0], queries.dtype)

    def numbers(self, queries):
        kernel = ops.cast(self.kernel, queries.dtype)
        distances = ops.arange(self.num_distances) - self.farthest
        vectors = sines_and_cosines(distances, kernel.shape[0] // 2, queries.dtype)
        vectors = ops.concatenate(vectors, axis=1)
        queries = queries + ops.cast(self.query_biases[1], queries.dtype)
        batch, _, num_queries, size = ops.shape(queries)
        counts = batch, num_queries
        if all(isinstance(count, int) for count in counts) and np.prod(counts) < size:
            # As in decoding a few texts: products of W with queries are fewer.
            by_head = ops.reshape(kernel, (-1, self.num_heads, size))
            queries = ops.matmul(queries, ops.transpose(by_head, (1, 2, 0)))
            return ops.matmul(queries, ops.transpose(vectors))
        vectors = ops.matmul(vectors, kernel)
        vectors = ops.reshape(vectors, (self.num_distances, self.num_heads, size))
        return ops.matmul(queries, ops.transpose(vectors, (1, 2, 0)))


RELATIVE_POSITIONS: dict[str, type[RelativePositions]] = {
    "relative-bias": RelativeBias,
    "relative-keys": RelativeKeys,
    "relative-sinusoids": RelativeSinusoids,
}


def _distances(num_rows, num_columns, start):
    return start + ops.arange(num_columns) - ops.arange(num_rows)[:, None]
