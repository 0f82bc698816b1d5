"""Adaptive softmax: rare words in clusters, which few positions need."""

import keras
from keras import ops

from models.gradients import custom_gradient
from models.layers.embedding import TokenEmbedding
from models.seeds import derive_seed

# Products with a table that are held at once.
TILE = 2**24


@keras.saving.register_keras_serializable("transevolve")
class AdaptiveEmbedding(TokenEmbedding):
    """A `TokenEmbedding` whose output layer has rare words in clusters.

    The head is a softmax over the frequent words and one entry for each cluster. A rare
    word has the probability of its cluster, times that of a softmax over the cluster's
    words (Grave et al. 2017, here without narrower vectors for rare words). The vectors
    of words are those of the table.

    Args:
      vocabulary_size, hidden_dim, **kwargs: see `TokenEmbedding`.
      cutoffs: ids at which a cluster begins, increasing and below `vocabulary_size`;
        ids go by frequency.

    Raises:
      ValueError: if the cutoffs do not part the ids.
    """

    def __init__(self, vocabulary_size, hidden_dim, *args, cutoffs, **kwargs):
        super().__init__(vocabulary_size, hidden_dim, *args, **kwargs)
        self.cutoffs = list(cutoffs)
        bounds = [0, *self.cutoffs, vocabulary_size]
        if any(first >= last for first, last in zip(bounds, bounds[1:], strict=False)):
            expected = f"increasing cutoffs from 1 to {vocabulary_size - 1}"
            raise ValueError(f"expected {expected}, got {self.cutoffs}")

    def build(self, input_shape):
        super().build(input_shape)
        self.clusters = self.add_weight(
            name="clusters",
            shape=(len(self.cutoffs), self.hidden_dim),
            initializer=keras.initializers.RandomNormal(
                stddev=self.hidden_dim**-0.5, seed=derive_seed(self.seed, "clusters")
            ),
        )

    def logits(self, x):
        """Logarithms of probabilities, float32 (batch, n, vocabulary_size)."""
        head, *tails = (
            ops.cast(ops.matmul(x, ops.transpose(table)), "float32")
            for table in self._tables()
        )
        clusters = self._cluster_logits(x)
        total = ops.logsumexp(
            ops.concatenate([head, clusters], axis=-1), axis=-1, keepdims=True
        )
        parts = [head - total]
        for i, tail in enumerate(tails):
            parts.append(clusters[..., i : i + 1] - total + ops.log_softmax(tail))
        return ops.concatenate(parts, axis=-1)

    def logits_at_position(self, x):
        """`logits` of (batch, beams, d)."""
        return self.logits(x)

    def losses(self, x, targets):
        """What `logits` gives of some words, without the products of all.

        A cluster's words are multiplied only where the target is one of them, or where
        one may be the likeliest word. Products are made anew for the gradient.

        Args:
          x: (batch, n, d), of static shape.
          targets: int32 (batch, n), ids.

        Returns:
          Cross-entropy, float32 (batch, n), and bool (batch, n), whether the target is
          the likeliest word.
        """
        shape, targets = targets.shape, ops.reshape(targets, (-1,))
        x = ops.reshape(x, (-1, self.hidden_dim))
        head, *tails = self._tables()
        clusters = self._cluster_logits(x)
        vectors = ops.take(ops.cast(self.embeddings, x.dtype), targets, axis=0)
        target_logits = ops.cast(ops.sum(x * vectors, axis=-1), "float32")

        total, best, first = _log_sums(x, head)
        best_in_head = best
        log_probs = target_logits
        bounds = [*self.cutoffs, self.vocabulary_size]
        for i, tail in enumerate(tails):
            logit, start = clusters[:, i], bounds[i]
            is_target = ops.logical_and(targets >= start, targets < bounds[i + 1])
            is_needed = ops.logical_or(is_target, logit > best_in_head)
            tail_total, tail_best, tail_first = _log_sums(x, tail, is_needed)
            log_probs += ops.where(is_target, logit - tail_total, 0.0)
            tail_best += logit - tail_total
            is_better = ops.logical_and(is_needed, tail_best > best)
            best = ops.where(is_better, tail_best, best)
            first = ops.where(is_better, tail_first + start, first)
        total = ops.logaddexp(total, ops.logsumexp(clusters, axis=-1))
        return (
            ops.reshape(total - log_probs, shape),
            ops.reshape(first == targets, shape),
        )

    def _tables(self):
        table = ops.cast(self.embeddings, self.compute_dtype)
        return ops.split(table, self.cutoffs)

    def _cluster_logits(self, x):
        table = ops.cast(self.clusters, x.dtype)
        return ops.cast(ops.matmul(x, ops.transpose(table)), "float32")

    def get_config(self):
        return {**super().get_config(), "cutoffs": self.cutoffs}


def _log_sums(x, table, is_needed=None):
    """Of rows' products with a table, the logarithm of the sum of their exponentials,
    the largest, and which that is.

    Rows that are needed come first, and go by tiles of so few that no array of all
    products is made. Those of tiles without one are 0.

    Args:
      x: (rows, d).
      table: (words, d).
      is_needed: bool (rows,), all if not given.

    Returns:
      float32, float32 and int32 (rows,). The second has no gradient.
    """
    rows, width = x.shape
    height = max(1, min(rows, TILE // table.shape[0]))
    filler = -rows % height
    if is_needed is None:
        is_needed = ops.ones((rows,), "bool")
    number = ops.sum(ops.cast(is_needed, "int32"))
    order = ops.argsort(ops.cast(ops.logical_not(is_needed), "int32"))
    tiles = ops.pad(ops.take(x, order, axis=0), [[0, filler], [0, 0]])
    tiles = ops.reshape(tiles, (-1, height, width))
    results = _of_tiles(tiles, table, (number + height - 1) // height)
    places = ops.argsort(order)
    total, best, first = (
        ops.take(ops.reshape(x, (-1,)), places, axis=0) for x in results
    )
    return total, ops.stop_gradient(best), first


def _of_tiles(tiles, table, number):
    """See `_log_sums`: those of the first `number` of (tiles, height, d)."""

    def products(tiles, table, i):
        rows = ops.take(tiles, i, axis=0)
        return rows, ops.cast(ops.matmul(rows, ops.transpose(table)), "float32")

    @custom_gradient
    def results(tiles, table, number):
        def forward(i, total, best, first):
            _, logits = products(tiles, table, i)
            largest = ops.max(logits, axis=-1)
            exponentials = ops.exp(logits - largest[:, None])
            tile_total = ops.log(ops.sum(exponentials, axis=-1)) + largest
            choice = ops.cast(ops.argmax(logits, axis=-1), "int32")
            return (
                i + 1,
                _put(total, i, tile_total),
                _put(best, i, largest),
                _put(first, i, choice),
            )

        empty = ops.zeros(tiles.shape[:2], "float32")
        start = (ops.zeros((), "int32"), empty, empty, ops.cast(empty, "int32"))
        _, total, best, first = ops.while_loop(lambda i, *_: i < number, forward, start)

        def backward(d_total, *_):
            def add(i, d_tiles, d_table):
                rows, logits = products(tiles, table, i)
                slopes = ops.take(d_total, i, axis=0)[:, None]
                d_logits = ops.exp(logits - ops.take(total, i, axis=0)[:, None])
                d_logits = ops.cast(d_logits * slopes, rows.dtype)
                return (
                    i + 1,
                    _put(d_tiles, i, ops.matmul(d_logits, table)),
                    d_table + ops.matmul(ops.transpose(d_logits), rows),
                )

            start = (
                ops.zeros((), "int32"),
                ops.zeros_like(tiles),
                ops.zeros_like(table),
            )
            _, d_tiles, d_table = ops.while_loop(lambda i, *_: i < number, add, start)
            return d_tiles, d_table, None

        return (total, best, first), backward

    return results(tiles, table, number)


def _put(x, i, value):
    return ops.scatter_update(x, ops.reshape(i, (1, 1)), value[None])
