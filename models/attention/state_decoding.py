"""Decoding by states of a size that no length changes: [S, z] of all tokens so far."""

import math

from keras import ops

from models.attention.cache import State
from models.attention.decoding import (
    Carrying,
    SourceDecoding,
    Step,
    beams_first,
    each_read,
)
from models.attention.heads import LOWEST, largest
from models.attention.safe_sums import (
    Sums,
    divided,
    log,
    read,
    sums_of,
    with_ones,
)


class StateDecoding(Carrying, SourceDecoding):
    """Decoding by states, of an `Operator` of feature maps."""

    def empty_cache(self, batch_size, beams, key_size, size, reads, dtype):
        """A `State` for each read, in float32 whatever the dtype: [S, z, M], (batch,
        beams, heads, f, v + 2). See `safe_sums.Sums`."""
        shape = (batch_size, beams, self.num_heads, self.feature_map.num_features)
        return empty_states(shape, size, reads)

    def step(self, inputs, biases, cache, visible):
        """Shared are log phi(q), (batch, beams, heads, f); and log w^l + log phi(k),
        likewise, a list of one a read. Biases are None where there are none."""
        queries, keys = inputs
        logs = [beams_first(log(keys))]
        if biases is not None:
            biases = beams_first(self._logs(biases))
            reads = biases.shape[-1]
            logs = [logs[0] + bias for bias in ops.split(biases, reads, axis=-1)]
        return Step(self, (beams_first(log(queries)), logs), [*cache])

    def advance(self, shared, number, past, values):
        """See `RecurrentDecoding`."""
        queries, keys = shared
        sums, before = past[..., :-1], past[..., -1:]
        logs = keys[number][..., None]
        maxima = ops.maximum(before, logs)
        rows = with_ones(values[:, :, :, None])
        sums = ops.exp(before - maxima) * sums + ops.exp(logs - maxima) * rows
        weights = queries + maxima[..., 0]
        if self.divides:
            weights = weights - largest(weights, axis=-1)
        products = ops.einsum("bnhf,bnhfv->bnhv", ops.exp(weights), sums)
        attended = divided(products) if self.divides else products[..., :-1]
        return attended, ops.concatenate([sums, maxima], axis=-1)

    def keys_of(self, memory):
        """See `Carrying`: the mean of what a feature has seen, weighed by its sum.
        Undivided, all that it has seen, with weight 1."""
        if not self.divides:
            values = [ops.exp(state[..., -1:]) * state[..., :-2] for state in memory]
            return ops.zeros((*ops.shape(values[0])[:3], len(memory))), values
        biases = [state[..., -1:] + log(state[..., -2:-1]) for state in memory]
        values = [divided(state[..., :-1]) for state in memory]
        return ops.concatenate(biases, axis=-1), values

    def left_by(self, parts, biases, values):
        """See `Carrying`."""
        sums = sums_of(parts[1], self._logs(biases), values)
        maxima = ops.swapaxes(sums.maxima, 2, 3)
        return State(ops.concatenate([sums.values, maxima], axis=-1)[:, None])

    def _logs(self, biases):
        """log w of the weights that an `Operator` has by its biases."""
        return biases if self.divides else math.log(2) + ops.log_sigmoid(biases)

    def source_cache(self, keys, biases, mask, values) -> Sums:
        """The `Sums` of a source in all reads, (batch, heads, reads, …): of one size,
        whatever its length."""
        if biases is None:
            biases = ops.zeros_like(keys[..., :1])
        biases = ops.expand_dims(ops.einsum("bhml->bhlm", biases), -1)
        return sums_of(keys[:, :, None], biases, values[:, :, None])

    def read_source(self, queries, cache):
        """See `SourceDecoding.read_source`."""
        return each_read(read(queries[:, :, None], cache), queries.dtype)


def empty_states(shape, size, reads) -> list:
    """A `State` for each read, of sums (*shape, size + 1) and their maxima."""
    sums = ops.zeros((*shape, size + 1), "float32")
    maxima = ops.full((*shape, 1), LOWEST, "float32")
    empty = ops.concatenate([sums, maxima], axis=-1)
    return [State(empty) for _ in range(max(reads, 1))]
