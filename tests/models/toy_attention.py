"""A toy attention, as a newcomer would write it."""

import keras
from keras import ops

from common.fields import real
from models.attention.softmax import SoftmaxOperator


class CosineOperator(SoftmaxOperator):
    """K = softmax(t cos(q, k)), with a learned t for each head.

    Args:
      temperature: t at first.
    """

    fields = {"temperature": real("t of the first step.", 0.1, 100)}
    variants = {"": {"temperature": 5.0}, "sharp": {"temperature": 10.0}}

    def __init__(self, num_heads, use, seed, temperature):
        super().__init__(num_heads, use, seed)
        self.first_temperature = temperature

    def build(self, layer, size):
        first = keras.initializers.Constant(self.first_temperature)
        shape = (self.num_heads, 1, 1)
        self.temperature = layer.add_weight(
            name="temperature", shape=shape, initializer=first
        )

    def prepare_queries(self, queries, scale):
        return ops.normalize(queries, axis=-1) * ops.cast(
            self.temperature, queries.dtype
        )

    def prepare_keys(self, keys, scale, mask=None):
        keys, logs = super().prepare_keys(keys, scale, mask)
        return ops.normalize(keys, axis=-1), logs
