"""Decoding by states where features have either sign: [S, z] and the mass so far."""

from keras import ops

from models.attention.decoding import (
    RecurrentDecoding,
    SourceDecoding,
    Step,
    beams_first,
    each_read,
)
from models.attention.safe_sums import with_ones
from models.attention.signed_sums import (
    bounded_quotient,
    least_mean,
    read,
    shares,
    sums_of,
)
from models.attention.state_decoding import empty_states


class SignedDecoding(RecurrentDecoding, SourceDecoding):
    """Decoding by states, of a `LinearOperator` whose features have signs."""

    def empty_cache(self, batch_size, beams, key_size, size, reads, dtype):
        """A `State` for each read, in float32 whatever the dtype: `Sums` and their
        maximum, (batch, beams, heads, f + 1, v + 2)."""
        rows = self.feature_map.num_features + 1
        return empty_states((batch_size, beams, self.num_heads, rows), size, reads)

    def step(self, inputs, biases, cache, visible):
        """Shared are phi(q), (batch, beams, heads, f); phi(k) and its share, (…,
        f + 1); log g, (…, 1), 0 where nothing is forgotten; and b^l, likewise, a list
        of one a read. Biases are None where there are none."""
        queries, keys, *decays = map(beams_first, inputs)
        zeros = ops.zeros_like(keys[..., :1])
        keys = ops.concatenate([keys, shares(keys, *decays)], axis=-1)
        each = [zeros]
        if biases is not None:
            each = ops.split(beams_first(biases), biases.shape[-1], axis=-1)
        decays = decays[0] if decays else zeros
        return Step(self, (queries, keys, decays, each), [*cache])

    def advance(self, shared, number, past, values):
        """See `RecurrentDecoding`."""
        queries, keys, decays, biases = shared
        bias = biases[number][..., None]
        sums, before = past[..., :-1], past[..., -1:] + decays[..., None]
        maxima = ops.maximum(before, bias)
        rows = keys[..., None] * with_ones(values[:, :, :, None])
        sums = ops.exp(before - maxima) * sums + ops.exp(bias - maxima) * rows
        products = ops.einsum("bnhf,bnhfv->bnhv", queries, sums[..., :-1, :])
        least = least_mean(queries)
        attended = bounded_quotient(products, sums[..., -1, -1:], least)
        return attended, ops.concatenate([sums, maxima], axis=-1)

    def source_cache(self, keys, biases, mask, values):
        """The `Sums` of a source in all reads, (batch, heads, reads, …)."""
        keys, values = (ops.cast(x, "float32")[:, :, None] for x in (keys, values))
        keys = ops.concatenate([keys, shares(keys)], axis=-1)
        if biases is None:
            biases = ops.zeros_like(keys[..., 0, :, :1])
        biases = ops.expand_dims(ops.einsum("bhml->bhlm", biases), -1)
        return sums_of(keys, ops.cast(biases, "float32"), values)

    def read_source(self, queries, cache):
        """See `SourceDecoding.read_source`."""
        attended = read(ops.cast(queries, "float32")[:, :, None], cache)
        return each_read(attended, queries.dtype)
