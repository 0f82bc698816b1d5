"""Gradients of a scalar by a model's weights, on whichever Keras backend runs."""

import keras
import numpy as np


def gradients(model, scalar, compiled=False):
    """{weight path below the model: gradient} of `scalar(model)`.

    Args:
      model: built.
      scalar: function of a callable that stands for the model's `call`.
      compiled: whether XLA compiles value and gradient.

    Returns:
      NumPy gradients, zeros for weights that the scalar does not depend on.
    """
    backend = keras.backend.backend()
    compute = {"tensorflow": _tensorflow, "jax": _jax}[backend]
    values = compute(model, scalar, compiled)
    names = [weight.path.split("/", 1)[1] for weight in model.trainable_variables]
    return dict(zip(names, map(np.asarray, values), strict=True))


def _tensorflow(model, scalar, compiled):
    import tensorflow as tf

    def compute():
        with tf.GradientTape() as tape:
            value = scalar(model)
        weights = [weight.value for weight in model.trainable_variables]
        slopes = tape.gradient(value, weights, unconnected_gradients="zero")
        return [tf.convert_to_tensor(slope) for slope in slopes]

    return (tf.function(compute, jit_compile=True) if compiled else compute)()


def _jax(model, scalar, compiled):
    import jax

    rest = [variable.value for variable in model.non_trainable_variables]

    def value(weights):
        return scalar(lambda *inputs: model.stateless_call(weights, rest, *inputs)[0])

    gradient = jax.jit(jax.grad(value)) if compiled else jax.grad(value)
    return gradient([weight.value for weight in model.trainable_variables])
