"""Attention layers in both forms, alone, and what they should give."""

import keras
import numpy as np
from keras import ops

from models.transevolve.attention import TimeEvolvingAttention
from models.transevolve.literal import LiteralAttention


def numpy(tensor):
    return ops.convert_to_numpy(tensor)


def attention_pair(width, heads, depths, causal=False, fidelity="paper", seed=0):
    """Both forms with the same random weights."""
    random = np.random.default_rng(seed)
    pair = []
    for form in (LiteralAttention, TimeEvolvingAttention):
        use = "causal" if causal else "self"
        layer = form(num_heads=heads, num_depths=depths, use=use, fidelity=fidelity)
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


def in_float64(layer):
    """{name: value} of its weights."""
    return {weight.name: numpy(weight).astype("float64") for weight in layer.weights}


def time_vector(layer, depth):
    """T^l where a depth is first read, (heads, d'/H), in float64."""
    coefficients = in_float64(layer)["time_coefficients"]
    of_first = layer.features[:: len(layer.features) // len(coefficients)]
    return (coefficients * of_first)[depth].reshape(layer.num_heads, -1)


def key_biases(layer, keys, depth):
    """b^l of equation 9, (batch, heads, keys), of K in float64."""
    time, kernel = time_vector(layer, depth), in_float64(layer)["query_time_kernel"]
    kernel = kernel.reshape(layer.num_heads, -1, layer.projected_dim)
    return np.einsum("bjd,htd,ht->bhj", keys, kernel, time)


def equation_9(layer, x, mask, depth):
    """What `read` should give, in float64, from the literal layer's weights.

    NaN where a query sees no real key.
    """

    def split(y):
        return y.reshape(*y.shape[:2], layer.num_heads, -1)

    weights = in_float64(layer)
    queries, keys = x @ weights["query_kernel"], x @ weights["key_kernel"]
    time = time_vector(layer, depth)
    query_time, key_time = (
        weights[name].reshape(layer.num_heads, -1, layer.projected_dim)
        for name in ("query_time_kernel", "key_time_kernel")
    )
    scores = layer.scale * np.einsum("bihd,bjhd->bhij", split(queries), split(keys))
    scores += np.einsum("bid,htd,ht->bhi", queries, key_time, time)[..., None]
    scores += key_biases(layer, keys, depth)[:, :, None]
    scores += np.einsum("htd,htd,ht->h", query_time, key_time, time**2)[:, None, None]
    visible = mask[:, None, None, :]
    if layer.causal:
        visible = visible & np.tri(x.shape[1], dtype=bool)
    scores = np.where(visible, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        attention = np.exp(scores - scores.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", attention, split(x)).reshape(x.shape)


def set_logits(pair, x, mask, largest_score, largest_bias):
    """Scales the weights until A0 and b^l reach those sizes; returns b's spread."""
    literal, factored = pair
    state = literal(x, x)
    scores = np.abs(numpy(state.scores)).max()
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
    """Attention at every depth, (depths, batch, queries, d).

    The input passes a dense layer first, so gradients by inputs are seen as its.
    """

    def __init__(self, attention, mask, num_queries=None):
        super().__init__(name="attend")
        self.attention, self.mask, self.num_queries = attention, mask, num_queries
        width = attention.hidden_dim
        self.dense = keras.layers.Dense(width, dtype=attention.dtype_policy)
        self.dense.build((None, None, width))
        self.dense.kernel.assign(np.eye(width))
        self.built = True

    def call(self, x):
        x = self.dense(x)
        state = self.attention(x[:, : self.num_queries], x, self.mask)
        depths = range(self.attention.num_depths)
        return ops.stack([state.read(depth, x) for depth in depths])
