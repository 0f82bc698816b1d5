"""Dense layers, whose shapes need not be worked out at run time, and pairs of them."""

import keras
from keras import initializers, ops

from models.seeds import derive_seed


def project(x, kernel):
    """x W: (..., inner) times (inner, outer).

    Where a size is not static, `ops.matmul` works out the shapes in the graph, by some
    ten operations, which a decoding step of one sentence feels. Here none is needed if
    only one size is not.
    """
    sizes = [-1 if size is None else size for size in x.shape[:-1]]
    if len(sizes) == 1 or sizes.count(-1) != 1:
        return ops.matmul(x, kernel)
    inner, outer = kernel.shape
    product = ops.matmul(ops.reshape(x, (-1, inner)), kernel)
    return ops.reshape(product, (*sizes, outer))


@keras.saving.register_keras_serializable("transevolve")
class Dense(keras.layers.Dense):
    """Multiplies as `keras.layers.Dense` does, by `project`, without an activation."""

    def call(self, x):
        x = project(x, self.kernel)
        return x if self.bias is None else ops.add(x, self.bias)


def seeded_dense(
    units: int, name: str, seed: int, kernel_scale: float = 1.0, **options
) -> Dense:
    """A dense layer whose kernel is drawn by its path below the owner of `seed`.

    Args:
      kernel_scale: factor on the deviation of Glorot's initialisation.
    """
    kernel = initializers.VarianceScaling(
        kernel_scale**2, "fan_avg", "uniform", derive_seed(seed, name, "kernel")
    )
    return Dense(units, kernel_initializer=kernel, name=name, **options)


@keras.saving.register_keras_serializable("transevolve")
class FeedForward(keras.layers.Layer):
    """contract(relu(expand(x))), equation 3 or 11 by the layers given.

    Args:
      expand: layer from the width to the inner size.
      contract: layer back.
    """

    def __init__(self, expand, contract, **kwargs):
        super().__init__(**kwargs)
        self.expand = expand
        self.contract = contract

    def build(self, input_shape):
        inner_shape = self.expand.compute_output_shape(input_shape)
        for layer, shape in ((self.expand, input_shape), (self.contract, inner_shape)):
            if not layer.built:  # one made from a config is
                layer.build(shape)

    def call(self, x):
        return self.contract(ops.relu(self.expand(x)))

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "expand": serialize(self.expand),
            "contract": serialize(self.contract),
        }

    @classmethod
    def from_config(cls, config):
        deserialize = keras.saving.deserialize_keras_object
        config["expand"] = deserialize(config["expand"])
        config["contract"] = deserialize(config["contract"])
        return cls(**config)
