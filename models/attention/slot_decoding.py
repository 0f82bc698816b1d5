"""Decoding with softmax(q K^T + b): what is kept of earlier tokens, and of a source."""

from typing import Any, NamedTuple

from keras import ops

from models.attention.cache import Slots
from models.attention.decoding import SourceDecoding, Step
from models.attention.heads import (
    MASKED,
    merge_heads,
    sees_a_key,
    split_heads,
    zero_unseeing,
)


class TokenCache(NamedTuple):
    """What is kept of earlier tokens, in `Slots`.

    2 d + L (d + H) numbers a token in TransEvolve, 2 d a layer in the Transformer.

    Attributes:
      keys: heads of the keys' size; () where scores compare no keys.
      biases: b of all reads, a head each of size 1 for each head and read; () where
        there are none.
      values: list, one a read.
    """

    keys: Any
    biases: Any
    values: list


class SourceCache(NamedTuple):
    """What is kept of a source, (batch, heads, …).

    Attributes:
      keys: (source, key size).
      biases: b of all reads, (reads, source), masked at padding; None where there are
        none.
      values: (source, size), those of all reads.
    """

    keys: Any
    biases: Any
    values: Any


class SlotDecoding(SourceDecoding):
    """Decoding by slots. For few queries no order of the products is faster than
    another: all rows of weights are made before the first read."""

    def empty_cache(self, batch_size, beams, key_size, size, reads, dtype):
        """`TokenCache`.

        Args:
          reads: how many have biases; 0 for one read without.
        """
        heads = self.num_heads

        def slots(heads, size):
            return Slots.empty(batch_size, beams, heads, size, dtype)

        biases = slots(heads * reads, 1) if reads else ()
        values = [slots(heads, size) for _ in range(max(reads, 1))]
        keys = slots(heads, key_size) if "key" in self.projections else ()
        return TokenCache(keys, biases, values)

    def step(self, inputs, biases, cache, visible):
        """Shared are the weights on the slots in all reads, (batch, heads, reads,
        beams, slots). Biases are None where there are none."""
        scores, keys = self.step_scores(inputs, cache)
        all_biases = None
        if biases is not None:
            batch, heads, beams, reads = ops.shape(biases)
            biases = ops.einsum("bhnl->bhln", biases)
            biases = ops.reshape(biases, (batch, heads * reads, beams, 1))
            biases = cache.biases.append(biases)
            all_biases = biases.rows()  # (batch, heads * reads, beams or 1, slots)
            rows, slots = ops.shape(all_biases)[2:]
            all_biases = ops.reshape(all_biases, (batch, heads, reads, rows, slots))
            cache = cache._replace(biases=biases)
        weights = self.slot_weights(scores, all_biases, visible)
        return Step(self, weights, cache._replace(keys=keys, values=[*cache.values]))

    def step_scores(self, inputs, cache):
        """Scores of all slots, (batch or 1, heads, beams or 1, slots), and the keys'
        slots with those of this position."""
        queries, keys = inputs
        keys = cache.keys.append(keys)
        return keys.scores(queries), keys

    def read_step(self, made, number, values):
        """See `Decoding.read_step`."""
        slots = made.cache.values
        slots[number] = slots[number].append(split_heads(values, self.num_heads))
        return merge_heads(slots[number].weighted_sum(made.shared[:, :, number]))

    def source_cache(self, keys, biases, mask, values):
        """`SourceCache`; biases are None where there are none."""
        if biases is not None:
            biases = ops.einsum("bhml->bhlm", biases)
        sees = sees_a_key(mask, 1, causal=False)
        return SourceCache(keys, biases, zero_unseeing(values, sees))

    def read_source(self, queries, cache):
        """See `SourceDecoding.read_source`."""
        scores = ops.matmul(queries, ops.swapaxes(cache.keys, 2, 3))
        biases = cache.biases
        biases = None if biases is None else biases[:, :, :, None]
        weights = self.slot_weights(scores, biases)
        batch, heads, reads, beams, source = ops.shape(weights)
        weights = ops.reshape(weights, (batch, heads, reads * beams, source))
        attended = merge_heads(ops.matmul(weights, cache.values))
        return ops.split(attended, reads, axis=1)

    def slot_weights(self, scores, biases, visible=None):
        """softmax(A0 + b^l) in all reads: equation 9 for a few queries.

        An operator may weigh the slots in another way.

        Args:
          scores: A0, (batch, heads, queries, keys).
          biases: b^l, (batch, heads, reads, queries or 1, keys); None for one read
            without.
          visible: (batch, queries, keys), which keys a query sees; None for all.

        Returns:
          (batch, heads, reads, queries, keys).
        """
        if visible is not None:
            scores = ops.where(visible[:, None], scores, MASKED)
        scores = scores[:, :, None]
        if biases is not None:
            scores = ops.add(scores, biases)  # they may differ in dtype
        return ops.softmax(scores, axis=-1)
