"""Attention layers in both forms, alone, and what they should give."""

import keras
import numpy as np
from keras import ops

from models.factored_attention import FactoredAttention
from models.literal_attention import LiteralAttention


def numpy(tensor):
    return ops.convert_to_numpy(tensor)


def attention_pair(
    width, heads, depths, causal=False, fidelity="paper", seed=0, factored_dtype=None
):
    """Both forms with the same random weights."""
    random = np.random.default_rng(seed)
    pair = []
    for form, dtype in ((LiteralAttention, None), (FactoredAttention, factored_dtype)):
        layer = form(heads, depths, causal=causal, fidelity=fidelity, dtype=dtype)
        layer.build((None, None, width))
        pair.append(layer)
    literal, factored = pair
    for name in (
        "query_kernel",
        "query_time_kernel",
        "key_kernel",
        "time_coefficients",
    ):
        shape = getattr(literal, name).shape
        value = random.normal(0, shape[-1] ** -0.5, shape)
        getattr(literal, name).assign(value)
        getattr(factored, name).assign(value)
    return literal, factored


def equation_9(layer, x, mask, depth):
    """What `attend` should give, in float64, from the literal layer's weights."""

    def split(y):
        return y.reshape(*y.shape[:2], layer.num_heads, -1)

    weights = {weight.name: numpy(weight).astype("float64") for weight in layer.weights}
    queries, keys = x @ weights["query_kernel"], x @ weights["key_kernel"]
    time = (weights["time_coefficients"] * layer.features)[depth]
    time = time.reshape(layer.num_heads, -1)
    query_time, key_time = (
        weights[name].reshape(layer.num_heads, -1, layer.projected_dim)
        for name in ("query_time_kernel", "key_time_kernel")
    )
    scores = layer.scale * np.einsum("bihd,bjhd->bhij", split(queries), split(keys))
    scores += np.einsum("bid,htd,ht->bhi", queries, key_time, time)[..., None]
    scores += np.einsum("bjd,htd,ht->bhj", keys, query_time, time)[:, :, None]
    scores += np.einsum("htd,htd,ht->h", query_time, key_time, time**2)[:, None, None]
    visible = mask[:, None, None, :]
    if layer.causal:
        visible = visible & np.tri(x.shape[1], dtype=bool)
    scores = np.where(visible, scores, -np.inf)
    attention = np.exp(scores - scores.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", attention, split(x)).reshape(x.shape)


def set_logits(pair, x, mask, largest_score, largest_bias):
    """Scales the weights until A0 and b^l reach those sizes; returns b's spread."""
    literal, factored = pair
    scores = np.abs(numpy(literal(x, x).scores)).max()
    state = literal(x, x)
    time = numpy(literal.time_vectors())
    biases = np.einsum("bhnt,lht->bnlh", numpy(state.key_operator), time)[mask]
    slope = largest_bias / np.abs(biases).max()
    for layer in pair:
        layer.query_kernel.assign(layer.query_kernel * (largest_score / scores))
        layer.time_coefficients.assign(layer.time_coefficients * slope)
    return slope * _spread(biases, mask)


def _spread(biases, mask):
    """Largest spread within a sequence; biases of real keys, sequence by sequence."""
    ends = np.cumsum(mask.sum(1))[:-1]
    return max(
        (part.max(0) - part.min(0)).max()
        for part in np.split(biases, ends)
        if len(part)
    )


class Attend(keras.Model):
    """Attention of the input over itself at every depth, (depths, batch, n, d)."""

    def __init__(self, attention, mask):
        super().__init__(name="attend")
        self.attention, self.mask = attention, mask

    def build(self, input_shape):
        pass

    def call(self, x):
        state = self.attention(x, x, self.mask)
        depths = range(self.attention.num_depths)
        return ops.stack([self.attention.attend(state, depth, x) for depth in depths])
