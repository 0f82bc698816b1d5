"""Layer normalisation with a gradient by hand."""

import keras
from keras import ops

from models.gradients import custom_gradient


@keras.saving.register_keras_serializable("transevolve")
class LayerNormalization(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` of the last axis, by `normalized`.

    Without gain or bias it is Keras's own.
    """

    def call(self, x):
        if self.gamma is None or self.beta is None:
            return super().call(x)
        dtype = keras.backend.result_type(x.dtype, "float32")
        arrays = (ops.cast(each, dtype) for each in (x, self.gamma, self.beta))
        return ops.cast(normalized(*arrays, self.epsilon), self.compute_dtype)


def normalized(x, gamma, beta, epsilon):
    """gamma z + beta with z = (x - mean) / sqrt(variance + epsilon), of the last axis.

    With g = gamma dy, the gradient by x is (g - mean(g) - z mean(g z)) / sqrt(variance
    + epsilon). It needs one array as large as x, z. Automatic differentiation of
    Keras's formula keeps and passes over several. It has first derivatives only.
    """

    @custom_gradient
    def normalized(x, gamma, beta):
        centred = x - _mean(x)
        inverse = ops.rsqrt(_mean(ops.square(centred)) + epsilon)
        z = centred * inverse

        def backward(dy):
            weighted, products = dy * gamma, dy * z
            dx = weighted - _mean(weighted) - z * _mean(products * gamma)
            rows = tuple(range(len(x.shape) - 1))
            return dx * inverse, ops.sum(products, rows), ops.sum(dy, rows)

        return z * gamma + beta, backward

    return normalized(x, gamma, beta)


def _mean(x):
    return ops.mean(x, axis=-1, keepdims=True)
