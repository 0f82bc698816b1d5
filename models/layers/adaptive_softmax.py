"""Adaptive softmax: rare words in clusters, which few positions need."""

import keras
from keras import ops

from models.gradients import custom_gradient
from models.layers.embedding import PADDING_ID, TokenEmbedding
from models.seeds import derive_seed

# Products of a tile, at most.
TILE = 2**24
# Rows of a tile, at most: a tile of which one row is needed is computed whole.
TILE_ROWS = 256


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

    def __init__(self, vocabulary_size, hidden_dim, *, cutoffs, **kwargs):
        super().__init__(vocabulary_size, hidden_dim, **kwargs)
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
        """Gives the losses of targets, and says which are the likeliest words.

        A cluster's words are multiplied only where the target is one of them, or where
        one of them may be likelier than a target that is the likeliest without them.
        Products are made anew for the gradient.

        Args:
          x: (batch, n, d).
          targets: int32 (batch, n), ids.

        Returns:
          Cross-entropy, float32 (batch, n), and bool (batch, n), whether the target is
          the likeliest word. Where the target is padding they mean nothing.
        """
        shape, targets = ops.shape(targets), ops.reshape(targets, (-1,))
        x = ops.reshape(x, (-1, self.hidden_dim))
        is_real = targets != PADDING_ID
        head, *clusters = self._tables()
        cluster_logits = self._cluster_logits(x)
        table = ops.cast(self.embeddings, x.dtype)
        products = ops.cast(x, "float32") * ops.cast(
            ops.take(table, targets, axis=0), "float32"
        )
        log_probs = ops.sum(products, axis=-1)
        total, best, first = _log_sums(x, head, is_real)
        bounds = [*self.cutoffs, self.vocabulary_size]
        for i, cluster in enumerate(clusters):
            logit, start, end = cluster_logits[:, i], bounds[i], bounds[i + 1]
            is_target = ops.logical_and(targets >= start, targets < end)
            # A target of which a likelier word is known needs no further one.
            may_be_first = ops.logical_or(first == targets, targets >= end)
            may_be_beaten = ops.logical_and(may_be_first, logit > best)
            is_needed = ops.logical_or(is_target, may_be_beaten)
            is_needed = ops.logical_and(is_needed, is_real)
            of_cluster, cluster_best, cluster_first = _log_sums(x, cluster, is_needed)
            log_probs += ops.where(is_target, logit - of_cluster, 0.0)
            cluster_best += logit - of_cluster
            is_better = ops.logical_and(is_needed, cluster_best > best)
            best = ops.where(is_better, cluster_best, best)
            first = ops.where(is_better, cluster_first + start, first)
        total = ops.logaddexp(total, ops.logsumexp(cluster_logits, axis=-1))
        losses, is_first = total - log_probs, first == targets
        return ops.reshape(losses, shape), ops.reshape(is_first, shape)

    def _tables(self):
        table = ops.cast(self.embeddings, self.compute_dtype)
        return ops.split(table, self.cutoffs)

    def _cluster_logits(self, x):
        table = ops.cast(self.clusters, x.dtype)
        return ops.cast(ops.matmul(x, ops.transpose(table)), "float32")


def _log_sums(x, table, is_needed):
    """Of rows' products with a table, the logarithm of the sum of their exponentials,
    the largest, and which that is.

    Rows that are needed come first, and go by tiles of so few that no array of all
    products is made. Those of tiles without one are 0.

    Args:
      x: (rows, d).
      table: (words, d).
      is_needed: bool (rows,).

    Returns:
      float32, float32 and int32 (rows,). The second has no gradient.
    """
    rows, width = ops.shape(x)
    height = max(1, min(TILE_ROWS, TILE // table.shape[0]))
    if x.shape[0] is not None:
        height = min(rows, height)
    number = ops.sum(ops.cast(is_needed, "int32"))
    order = ops.argsort(ops.cast(ops.logical_not(is_needed), "int32"))
    # Rows are padded by the first one.
    places = ops.arange(rows + -rows % height) % rows
    tiles = ops.take(x, ops.take(order, places, axis=0), axis=0)
    tiles = ops.reshape(tiles, (-1, height, width))
    results = _of_tiles(tiles, table, (number + height - 1) // height)
    back = ops.argsort(order)
    return tuple(ops.take(ops.reshape(x, (-1,)), back, axis=0) for x in results)


def _of_tiles(tiles, table, number):
    """See `_log_sums`: those of the first `number` of (tiles, height, d)."""

    def products(tiles, table, i):
        rows = ops.take(tiles, i, axis=0)
        return rows, ops.cast(ops.matmul(rows, ops.transpose(table)), "float32")

    @custom_gradient
    def results(tiles, table, number):
        def forward(i, total, best, first):
            _, logits = products(tiles, table, i)
            largest = ops.max(logits, axis=-1, keepdims=True)
            tile_total = ops.log(ops.sum(ops.exp(logits - largest), axis=-1))
            # The first of the largest; Keras's own search is slow on TensorFlow.
            choice = ops.cast(ops.argmax(logits >= largest, axis=-1), "int32")
            return (
                _next(i, tile_total),
                _put(total, i, tile_total + largest[:, 0]),
                _put(best, i, largest[:, 0]),
                _put(first, i, choice),
            )

        empty = ops.zeros(ops.shape(tiles)[:2], "float32")
        start = (ops.zeros((), "int32"), empty, empty, ops.cast(empty, "int32"))
        _, total, best, first = ops.while_loop(lambda i, *_: i < number, forward, start)

        def backward(d_total, *_):
            def add(i, d_tiles, d_table):
                rows, logits = products(tiles, table, i)
                slopes = ops.take(d_total, i, axis=0)[:, None]
                d_logits = ops.exp(logits - ops.take(total, i, axis=0)[:, None])
                d_logits = ops.cast(d_logits * slopes, rows.dtype)
                by_table = ops.matmul(ops.transpose(d_logits), rows)
                d_table = d_table + ops.cast(by_table, "float32")
                d_rows = ops.matmul(d_logits, table)
                return _next(i, d_table[0]), _put(d_tiles, i, d_rows), d_table

            zeros = ops.zeros_like(tiles), ops.zeros_like(table, dtype="float32")
            start = (ops.zeros((), "int32"), *zeros)
            _, d_tiles, d_table = ops.while_loop(lambda i, *_: i < number, add, start)
            return d_tiles, ops.cast(d_table, table.dtype), None

        return (total, best, first), backward

    return results(tiles, table, number)


def _next(i, after):
    """Gives i + 1 once an array of tile i is made; TensorFlow would hold ten tiles."""
    return i + 1 + ops.minimum(ops.cast(ops.isfinite(after[0]), "int32"), 0)


def _put(x, i, value):
    """Gives the array with another value at i of its first axis.

    By a choice, and not by scattering, for which TensorFlow goes to the CPU where
    operations are deterministic.
    """
    here = ops.arange(ops.shape(x)[0]) == i
    here = ops.reshape(here, (-1, *[1] * (len(x.shape) - 1)))
    return ops.where(here, value[None], x)
