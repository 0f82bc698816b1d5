"""Synthesizer: a softmax of scores that compare no queries with keys."""

from keras import ops

from common.fields import boolean
from models.attention.heads import (
    transpose,
    transposed_times,
)
from models.attention.softmax import SoftmaxOperator
from models.attention.synthetic_scores import SCORES, weights_of


class SynthesizerOperator(SoftmaxOperator):
    """K = softmax(S) of a Synthesizer's scores S (Tay et al. 2020, section 3.1).

    S is learned, or made of a query alone. The paper's mixture with dot products is

        K = softmax(s S + (1 - s) Q K^T)

    for scaled queries and a share s, which each head learns and which is a half at
    first. S and Q K^T are made of the same queries, where both are.

    Where all texts share K, it has no batch axis: padding and biases enter as weights
    on the keys. So one softmax serves all texts, and its gradient is one product.

    Args:
      scores: a key of `SCORES`.
      mixture: whether to mix.
      **hyperparameters: of the scores, those that they have.
    """

    uses = ("self", "causal")
    memory = None
    # A read without weights would have padding in the scores, for each text its own.
    rows_sum_to_one = False
    padding = "end"
    is_ordered = True
    has_weights_by_position = True
    takes_relative_positions = False
    variants = {
        "random": {"scores": "random", "mixture": False},
        "factorised-random": {
            "scores": "factorised-random",
            "mixture": False,
            "rank": 8,
        },
        "dense": {"scores": "dense", "mixture": False},
        "factorised-dense": {"scores": "factorised-dense", "mixture": False},
        "random-mixture": {"scores": "random", "mixture": True},
    }

    def __init__(self, num_heads, use, seed, scores, mixture, **hyperparameters):
        super().__init__(num_heads, use, seed)
        self.synthetic = SCORES[scores](**hyperparameters)
        self.mixture = mixture
        needed = {"query": mixture or self.synthetic.needs_queries, "key": mixture}
        self.projections = tuple(
            name for name, is_needed in needed.items() if is_needed
        )

    @classmethod
    def fields_of(cls, hyperparameters):
        """Those of the scores, which the variant chooses."""
        mixture = boolean("Whether the Synthesizer's scores are mixed with Q K^T.")
        return {"mixture": mixture, **SCORES[hyperparameters["scores"]].fields}

    def build(self, layer, size):
        """Makes those of the scores, and logits of the shares, S's and Q K^T's."""
        self.max_length = layer.max_length
        add_weight = weights_of(layer, self.num_heads, self.seed)
        self.synthetic.build(add_weight, size, self.max_length)
        if self.mixture:
            self.shares = layer.add_weight(
                name="shares", shape=(2, self.num_heads, 1, 1), initializer="zeros"
            )

    def prepare_queries(self, queries, scale):
        """Scaled queries, and the factors of S that are made of queries."""
        return queries * scale, self.synthetic.by_queries(queries)

    def further_inputs(self, x, context, mask=None, training=None):
        """The factors of S that are not."""
        lengths = ops.shape(x)[1], ops.shape(context)[1]
        return self.synthetic.by_positions(*lengths, x.dtype)

    def inputs_of_step(self, queries, keys, x, position):
        """Those of one row and all columns, and its position."""
        factors = self.synthetic.by_positions(1, self.max_length, x.dtype, position)
        return self.inputs(queries, keys, (*factors, position))

    def inputs(self, queries, keys, further=()):
        """The factors of S, after the queries and keys of a mixture."""
        scaled, by_queries = (None, ()) if queries is None else queries
        factors = (*by_queries, *further)
        if not self.mixture:
            return factors
        shares = ops.cast(ops.softmax(self.shares, axis=0), keys.dtype)
        return scaled * shares[1], keys, factors[0] * shares[0], *factors[1:]

    def scores(self, *inputs):
        """See `SoftmaxOperator.scores`."""
        products, factors = self._parted(inputs)
        scores = self.synthetic.make(*factors)
        if products:
            queries, keys = products
            scores = ops.matmul(queries, transpose(keys)) + scores
        return scores, self.hidden(*ops.shape(scores)[-2:])

    def step_scores(self, inputs, cache):
        *inputs, position = inputs
        products, factors = self._parted(inputs)
        places = position + cache.values[0].distances(position)
        # There may be more slots than positions, none of which is visible.
        places = ops.clip(places, 0, self.max_length - 1)
        scores = ops.take(self.synthetic.make(*factors), places, axis=-1)
        if not products:
            return scores, ()
        by_products, keys = super().step_scores(products, cache)
        return scores + by_products, keys

    def by_scores(self, d_scores, *inputs):
        """See `SoftmaxOperator.by_scores`."""
        products, factors = self._parted(inputs)
        gradients = self.synthetic.gradients(d_scores, *factors)
        if products:
            queries, keys = products
            by_queries = ops.matmul(d_scores, keys)
            by_keys = transposed_times(d_scores, queries)
            gradients = by_queries, by_keys, *gradients
        return tuple(
            gradient
            if gradient is None or len(gradient.shape) == len(x.shape)
            else ops.sum(gradient, axis=0)
            for gradient, x in zip(gradients, inputs, strict=True)
        )

    def _parted(self, inputs):
        """Queries and keys of a mixture, and the factors of S."""
        return (inputs[:2], inputs[2:]) if self.mixture else ((), inputs)

    def times(self, parts, x):
        if _is_shared(parts[0]):
            return ops.einsum("hqk,bhkv->bhqv", parts[0], x)
        return ops.matmul(parts[0], x)

    def transposed_times(self, parts, y):
        return transposed_times(parts[0], y)

    def gradient(self, parts, left, right):
        kernel, *inputs = parts
        if _is_shared(kernel):
            d_kernel = ops.einsum("bhqr,bhkr->hqk", left, right)
        else:
            d_kernel = ops.matmul(left, transpose(right))
        # A softmax's correction is left out: docs/attention.md.
        return self.by_scores(kernel * d_kernel, *inputs)


def _is_shared(kernel):
    """Whether all texts share it, (heads, n, m)."""
    return len(kernel.shape) == 3
