"""Decoding with softmax(A0 + b^l): what the exact forms share."""

from typing import Any, NamedTuple

from keras import ops

from models.attention.cache import Slots
from models.attention.evolving import TimeEvolvingAttention
from models.attention.heads import (
    MASKED,
    merge_heads,
    scaled_scores,
    sees_a_key,
    split_heads,
    zero_unseeing,
)
from models.dense import linear


class Memory(NamedTuple):
    """What cross-attention needs of a source.

    Attributes:
      keys: K, (batch, heads, source, D/H).
      biases: b^l, (batch, heads, depths, source), masked at padding.
      values: (batch, heads, source, d/H); all depths'.
    """

    keys: Any
    biases: Any
    values: Any


class Cache(NamedTuple):
    """What self-attention keeps of earlier tokens, in `Slots`.

    2 d + L (d + H) numbers a token.

    Attributes:
      keys: K, heads of size D/H.
      biases: b^l, a head each of size 1 for each head and depth.
      values: list, one per depth: values, heads of size d/H.
    """

    keys: Any
    biases: Any
    values: list


class Step(NamedTuple):
    """A position's attention weights at all depths, (batch, heads, depths, beams,
    slots), and the cache, with its values up to the last depth that attended."""

    weights: Any
    cache: Cache


class EvolvingSoftmaxAttention(TimeEvolvingAttention):
    """Equation 9 for a few queries, where no form is faster than another.

    Only b^l of the evolution terms acts (docs/attention.md), and all rows of weights
    are known before the first depth runs. A subclass has `call` and `attend`.
    """

    def empty_cache(self, batch_size, beams):
        """`Cache`."""
        heads, depths = self.num_heads, self.num_depths
        size = self.hidden_dim // heads

        def slots(heads, size):
            return Slots.empty(batch_size, beams, heads, size, self.compute_dtype)

        return Cache(
            slots(heads, 2 * size),
            slots(heads * depths, 1),
            [slots(heads, size) for _ in range(depths)],
        )

    def step(self, x, constants, cache, visible):
        """The `Step` of (batch, beams, d)."""
        keys, biases = self._keys_and_biases(x, constants)
        keys = cache.keys.append(keys)
        batch, heads, depths, beams = ops.shape(biases)
        biases = ops.reshape(biases, (batch, heads * depths, beams, 1))
        biases = cache.biases.append(biases)
        weights = self._probabilities(
            keys.scores(self._scaled_queries(x)),
            ops.reshape(biases.all(), (batch, heads, depths, -1)),
            visible,
        )
        return Step(weights, cache._replace(keys=keys, biases=biases))

    def attend_step(self, state, depth, values):
        """What is attended at a depth, (batch, beams, d), and the next `Step`."""
        values = split_heads(values, self.num_heads)
        kept = list(state.cache.values)
        kept[depth] = kept[depth].append(values)
        attended = merge_heads(kept[depth].weighted_sum(state.weights[:, :, depth]))
        return attended, state._replace(cache=state.cache._replace(values=kept))

    def memory(self, context, values, padding_mask=None):
        """`Memory` of (batch, source, d); the values are those of every depth."""
        keys, biases = self._keys_and_biases(context, self.directions(), padding_mask)
        values = split_heads(values, self.num_heads)
        seeing = sees_a_key(padding_mask, 1, causal=False)
        return Memory(keys, biases, zero_unseeing(values, seeing))

    def attend_to_memory(self, x, memory):
        """What each depth attends to, (batch, beams, d) each."""
        scores = scaled_scores(self._scaled_queries(x), memory.keys, causal=False)
        weights = self._probabilities(scores, memory.biases)
        batch, heads, depths, beams, source = ops.shape(weights)
        weights = ops.reshape(weights, (batch, heads, depths * beams, source))
        attended = merge_heads(ops.matmul(weights, memory.values))
        return ops.split(attended, depths, axis=1)

    def _keys_and_biases(self, context, directions, padding_mask=None):
        """What decoding needs of the keys, without dropout.

        Args:
          context: (batch, keys, d).
          directions: from `directions`, the same for all tokens.
          padding_mask: (batch, keys), true at real tokens; None if all are real.

        Returns:
          K, (batch, heads, keys, D/H), and b^l, (batch, heads, depths, keys).
        """
        keys = linear(context, self.key_kernel)
        biases = ops.einsum("bkn->bnk", linear(keys, directions))
        batch, length, _ = ops.shape(context)
        biases = ops.reshape(biases, (batch, self.num_heads, self.num_depths, length))
        if padding_mask is not None:
            visible = ops.cast(padding_mask, "bool")[:, None, None, :]
            biases = ops.where(visible, biases, MASKED)
        return split_heads(keys, self.num_heads), biases

    def _scaled_queries(self, x):
        """Q times the scale, (batch, heads, queries, D/H), of (batch, queries, d)."""
        queries = linear(x, self.query_kernel) * self.scale
        return split_heads(queries, self.num_heads)

    def _probabilities(self, scores, biases, visible=None):
        """softmax(A0 + b^l) at all depths: equation 9 for a few queries.

        Args:
          scores: A0, (batch, heads, queries, keys).
          biases: b^l, (batch, heads, depths, keys).
          visible: (batch, queries, keys), which keys a query sees; None for all.

        Returns:
          (batch, heads, depths, queries, keys).
        """
        if visible is not None:
            scores = ops.where(visible[:, None], scores, MASKED)
        # add, not +: they may differ in dtype
        scores = ops.add(scores[:, :, None], biases[:, :, :, None])
        return ops.softmax(scores, axis=-1)
