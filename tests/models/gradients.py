"""Gradients of a scalar by a model's weights, on whichever Keras backend runs."""

import keras
import numpy as np


def gradients(model, scalar):
    """{weight path below the model: gradient} of `scalar(model)`.

    Args:
      model: built.
      scalar: function of a callable that stands for the model's `call`.

    Returns:
      NumPy gradients, zeros for weights that the scalar does not depend on.
    """
    backend = keras.backend.backend()
    compute = {"tensorflow": _tensorflow, "jax": _jax}[backend]
    values = compute(model, scalar)
    names = [weight.path.split("/", 1)[1] for weight in model.trainable_variables]
    return dict(zip(names, map(np.asarray, values), strict=True))


def _tensorflow(model, scalar):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        value = scalar(model)
    weights = [weight.value for weight in model.trainable_variables]
    slopes = tape.gradient(value, weights, unconnected_gradients="zero")
    return map(tf.convert_to_tensor, slopes)


def _jax(model, scalar):
    import jax

    rest = [variable.value for variable in model.non_trainable_variables]

    def value(weights):
        return scalar(lambda *inputs: model.stateless_call(weights, rest, *inputs)[0])

    return jax.grad(value)([weight.value for weight in model.trainable_variables])
