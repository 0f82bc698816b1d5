"""Gradients of a scalar, on whichever Keras backend runs."""

import keras
import numpy as np


def gradients(model, scalar, compiled=None):
    """{weight path below the model: gradient} of `scalar(model)`.

    Args:
      model: built.
      scalar: function of a callable that stands for the model's `call`.
      compiled: whether XLA compiles value and gradient. By default where that takes
        less time: JAX compiles each operation if not all at once.

    Returns:
      NumPy gradients, zeros for weights that the scalar does not depend on.
    """
    return with_gradients(model, lambda call: (scalar(call), ()), compiled)[1]


def with_gradients(model, function, compiled=None):
    """What `function(model)` gives, and the gradients of the first of its two parts.

    Arguments and gradients are those of `gradients`.
    """
    backend = keras.backend.backend()
    if compiled is None:
        compiled = backend == "jax"
    compute = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[backend]
    result, values = compute(model, function, compiled)
    names = [weight.path.split("/", 1)[1] for weight in model.trainable_variables]
    return result, dict(zip(names, map(np.asarray, values), strict=True))


def by_inputs(scalar, *inputs):
    """Those by inputs of a function: tensors, one for each; None or zeros for an input
    that nothing depends on."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(scalar, argnums=tuple(range(len(inputs))))(*inputs)
    if keras.backend.backend() == "torch":
        import torch

        inputs = [torch.tensor(x, requires_grad=True) for x in inputs]
        return torch.autograd.grad(scalar(*inputs), inputs, allow_unused=True)
    import tensorflow as tf

    inputs = [tf.convert_to_tensor(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = scalar(*inputs)
    return tape.gradient(value, inputs)


def _tensorflow(model, function, compiled):
    import tensorflow as tf

    def compute():
        with tf.GradientTape() as tape:
            result = function(model)
        weights = [weight.value for weight in model.trainable_variables]
        slopes = tape.gradient(result[0], weights, unconnected_gradients="zero")
        return result, [tf.convert_to_tensor(slope) for slope in slopes]

    return (tf.function(compute, jit_compile=True) if compiled else compute)()


def _jax(model, function, compiled):
    import jax

    rest = [variable.value for variable in model.non_trainable_variables]

    def compute(weights):
        result = function(
            lambda *inputs, **options: model.stateless_call(
                weights, rest, *inputs, **options
            )[0]
        )
        return result[0], result

    gradient = jax.grad(compute, has_aux=True)
    slopes, result = (jax.jit(gradient) if compiled else gradient)(
        [weight.value for weight in model.trainable_variables]
    )
    return result, slopes


def _torch(model, function, compiled):
    import torch

    result = function(model)
    weights = [weight.value for weight in model.trainable_variables]
    slopes = torch.autograd.grad(result[0], weights, allow_unused=True)
    return result, [
        torch.zeros_like(weight) if slope is None else slope
        for slope, weight in zip(slopes, weights, strict=True)
    ]
