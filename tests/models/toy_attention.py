"""A toy attention, as a newcomer would write it: its cache is states, not slots."""

from typing import Any, NamedTuple

import keras
from keras import ops
from models.attention.mechanism import Attention

from common.fields import real
from models.attention.cache import State
from models.attention.heads import is_future
from models.products import with_gradients
from models.seeds import derive_seed


class MeanState(NamedTuple):
    """How much each query takes of each key, (batch, queries, keys)."""

    weights: Any


class MeanStep(NamedTuple):
    cache: Any


@keras.saving.register_keras_serializable("toy")
class MeanAttention(Attention):
    """The mean of the values that are visible, times a gain.

    Recurrently a state: the sum of the values of each depth, and how many there were.
    """

    variants = {"": {"gain": 1.0}, "loud": {"gain": 2.0}}
    fields = {"gain": real("What the mean is multiplied by.", 0.1, 10)}

    def __init__(self, *args, gain, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = gain

    def build(self, x_shape, context_shape=None):
        self.width = x_shape[-1]
        self.filter = self.add_weight(
            name="filter",
            shape=(self.width,),
            initializer=keras.initializers.RandomUniform(
                0.5, 1.5, derive_seed(self.seed, "filter")
            ),
        )

    def call(self, x, context, padding_mask=None, training=None):
        queries, keys = (ops.ones_like(y[..., :1]) for y in (x, context))
        visible = ops.matmul(queries, ops.swapaxes(keys, 1, 2))
        if self.causal:
            visible *= 1 - ops.cast(is_future(*ops.shape(visible)[1:]), visible.dtype)
        if padding_mask is not None:
            visible *= ops.cast(padding_mask, visible.dtype)[:, None]
        total = ops.maximum(ops.sum(visible, axis=-1, keepdims=True), 1)
        return MeanState(self.gain * visible / total)

    def attend(self, state, depth, values):
        return ops.matmul(state.weights, self.filter * values)

    def empty_cache(self, batch_size, beams):
        zeros = ops.zeros((batch_size, beams, self.width + 1), "float32")
        return [State(zeros) for _ in range(self.num_depths)]

    def step(self, x, constants, cache, visible):
        return MeanStep(cache)

    def attend_step(self, state, depth, values):
        values = self.filter * values
        new = ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)
        cache = list(state.cache)
        cache[depth] = State(cache[depth].value + ops.cast(new, "float32"))
        total, count = ops.split(cache[depth].value, [self.width], axis=-1)
        return self.gain * total / count, MeanStep(cache)

    def memory(self, context, values, padding_mask=None):
        state = self(context[:, :1], context, padding_mask)
        return self.attend(state, 0, values)

    def attend_to_memory(self, x, memory):
        return [memory + ops.zeros_like(x)] * self.num_depths

    def products(self, batch_size, length):
        sizes = (length, length, self.width)
        return with_gradients("mean", self.num_depths, batch_size, sizes)

    def get_config(self):
        return {**super().get_config(), "gain": self.gain}
