"""Dense layers whose shapes need not be worked out at run time."""

import keras
from keras import initializers, ops

from models.seeds import derive_seed


def linear(x, kernel):
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
    """`keras.layers.Dense` by `linear`, without an activation."""

    def call(self, x):
        x = linear(x, self.kernel)
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
