"""What an attention layer has besides, to decode: one position after the other."""

from keras import ops

from models.attention import reading
from models.attention.heads import split_heads


class LayerDecoding:
    """What an `Attention` has besides, to decode one position at a time, for all beams
    of a sentence.

    As causal attention:

        constants = attention.constants()             what no token changes
        cache = attention.empty_cache(batch_size, beams)
        made = attention.step(x, constants, cache, visible, position)
        attended = made.read(number, values)
        cache = made.left()                          after the last read

      x, values, attended: (batch, beams, d).
      cache: nested `models.attention.cache.Slots` (kept for each position and beam)
        and `State`s (of a fixed size, handed on from parents to survivors).
      visible: from `models.attention.cache.SlotMap`; None where no cache has slots.
      position: of the tokens, a scalar; needed where positions are in the attention.

    As cross-attention, to a source that all depths share:

        cache = attention.source_cache(context, values, padding_mask)
        attended = attention.read_source(x, cache)    a list, one a read
    """

    can_decode = True

    def constants(self):
        """What `step` needs that no token changes."""
        return ()

    def empty_cache(self, batch_size, beams):
        return self.operator.empty_cache(
            batch_size,
            beams,
            self.key_size,
            self.head_size,
            self.num_biased_reads,
            self.compute_dtype,
        )

    def step(self, x, constants, cache, visible, position=None):
        if isinstance(position, int):
            self._check_length(position + 1)
        queries, keys, values = self.project(x, x)
        # All beams of a step are rotated by one position.
        positions = ops.reshape(position, (1,)) if self.rotary else None
        queries = self._prepared_queries(queries, positions)
        keys, biases = self._keys_and_biases(keys, x, constants, positions)
        inputs = self.operator.inputs_of_step(queries, keys, x, position)
        made = self.operator.step(inputs, biases, cache, visible)
        return made if values is None else reading.OfValues(made, values)

    def source_cache(self, context, values, padding_mask=None):
        keys, projected = self.project_keys(context)
        keys, biases = self._keys_and_biases(
            keys, context, self.constants(), mask=padding_mask
        )
        values = split_heads(values if projected is None else projected, self.num_heads)
        return self.operator.source_cache(keys, biases, padding_mask, values)

    def read_source(self, x, cache):
        queries = self._prepared_queries(self.project_queries(x))
        return self.operator.read_source(queries, cache)
