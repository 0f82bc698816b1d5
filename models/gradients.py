"""Gradients by hand."""

from collections.abc import Callable

import keras
from keras import ops


def custom_gradient(function: Callable) -> Callable:
    """Gives a function a gradient by hand, which refuses to be differentiated.

    A gradient by hand uses arrays of the forward pass, which automatic differentiation
    takes for constants. So its own derivative would be wrong. TensorFlow computes
    directional derivatives in forward mode by it, too.

    Args:
      function: of tensors. It returns its outputs and `backward`, a function of their
        gradients, one argument for each output. That returns the gradients of the
        function's arguments, None for each that has none. What the function closes over
        must not change with the values of its arguments, since JAX traces it apart.

    Raises:
      ValueError: from the function that is returned, where its gradient is
        differentiated.
    """

    if keras.backend.backend() == "torch":
        return _by_torch(function)

    @ops.custom_gradient
    def with_gradient(*arguments):
        outputs, backward = function(*arguments)

        def backward_once(*slopes):
            if isinstance(slopes[0], tuple | list):  # as JAX passes those of several
                slopes = slopes[0]
            gradients = backward(*slopes)
            if not isinstance(gradients, tuple):
                return _last(gradients)
            return tuple(x if x is None else _last(x) for x in gradients)

        return outputs, backward_once

    return with_gradient


REFUSAL = (
    "expected first derivatives in reverse mode, found a derivative of a gradient by "
    "hand or one in forward mode, which it does not have; differences of gradients "
    "give second derivatives"
)


@ops.custom_gradient
def _last(gradient):
    """The gradient as it is, which raises where it is differentiated."""

    def backward(*slopes):
        raise ValueError(REFUSAL)

    return gradient, backward


def copies(x, number: int) -> list:
    """So many copies of an array, whose gradients are added up as one array.

    It is for a conditional's branch that uses something more than twice, where it also
    counts that what is used goes on to another branch. TensorFlow may make a temporary
    variable for a sum of three arrays or more, also in a step that takes the other
    branch. There it is left over, and the next step fails.
    """
    return ops.unstack(ops.broadcast_to(x[None], (number, *ops.shape(x))))


def pulled_back(function: Callable, arguments: tuple, slopes) -> tuple:
    """What a function of arrays gives, and its arguments' gradients by slopes of that.

    It is for a gradient by hand that evaluates something again.

    Args:
      arguments: float arrays; one that nothing depends on has the gradient 0.
      slopes: gradient of the only output.
    """
    backend, arguments = keras.backend.backend(), list(arguments)
    if backend == "jax":
        import jax

        outputs, pull = jax.vjp(function, *arguments)
        return outputs, pull(slopes)
    if backend == "torch":
        import torch

        with torch.enable_grad():
            arguments = [x.detach().requires_grad_() for x in arguments]
            outputs = function(*arguments)
        gradients = torch.autograd.grad(outputs, arguments, slopes, allow_unused=True)
        return outputs.detach(), tuple(
            torch.zeros_like(x) if gradient is None else gradient
            for x, gradient in zip(arguments, gradients, strict=True)
        )
    import tensorflow

    with tensorflow.GradientTape() as tape:
        tape.watch(arguments)
        outputs = function(*arguments)
    return outputs, tape.gradient(outputs, arguments, slopes, "zero")


def _by_torch(function):
    """Makes a `custom_gradient`; that of Keras takes one output alone."""
    import torch

    class WithGradient(torch.autograd.Function):
        @staticmethod
        def forward(context, *arguments):
            outputs, context.backward_by_hand = function(*arguments)
            if not isinstance(outputs, tuple):
                return outputs
            # PyTorch knows outputs by their arrays: one that comes twice is one.
            return tuple(
                x.clone() if any(x is y for y in outputs[:i]) else x
                for i, x in enumerate(outputs)
            )

        @staticmethod
        def backward(context, *slopes):
            if torch.is_grad_enabled():  # as where the gradient is to have one
                raise ValueError(REFUSAL)
            return context.backward_by_hand(*slopes)

    return WithGradient.apply
