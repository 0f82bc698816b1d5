"""Losses in nats, each item's own: who averages also masks."""

import math

import keras
from keras import ops

from models.gradients import custom_gradient


def cross_entropy(targets, logits):
    """Cross-entropy, (...,), of logits (..., classes).

    Negative targets, of filler rows, give the value of class 0: mask it.
    """
    return ops.sparse_categorical_crossentropy(
        ops.maximum(targets, 0), ops.cast(logits, "float32"), from_logits=True
    )


def smoothed_cross_entropy(targets, logits, smoothing: float):
    """Cross-entropy to smoothed targets, (...,), of logits (..., classes).

    The target has the probability 1 - smoothing, the others share the rest evenly;
    the entropy of that distribution is taken off, so the smallest value is 0. As in
    the authors' code.

    Args:
      targets: int32 (...,), ids from 0.
      logits: (..., classes).
      smoothing: from 0 to below 1; 0 gives the plain cross-entropy.
    """
    classes = logits.shape[-1]
    high, low = 1 - smoothing, smoothing / (classes - 1)
    entropy = -sum(
        count * p * math.log(p) for count, p in ((1, high), (classes - 1, low)) if p
    )

    # Automatic differentiation keeps more arrays as large as the logits, and takes
    # twice the time on a CPU where operations are deterministic.
    @custom_gradient
    def loss(logits, targets):
        shifted = logits - ops.max(logits, axis=-1, keepdims=True)
        exponentials = ops.exp(shifted)
        total = ops.sum(exponentials, axis=-1, keepdims=True)
        target_logit = ops.take_along_axis(shifted, targets[..., None], axis=-1)
        expected = (high - low) * target_logit[..., 0] + low * ops.sum(shifted, axis=-1)

        def backward(d_loss):
            is_target = ops.one_hot(targets, classes, dtype="bool")
            smoothed = ops.where(is_target, high, low)
            return d_loss[..., None] * (exponentials / total - smoothed), None

        return ops.log(total[..., 0]) - expected - entropy, backward

    targets = ops.convert_to_tensor(targets, "int32")
    return loss(ops.cast(logits, "float32"), targets)


def first_choice(logits):
    """The class of the largest of logits (..., classes), int32 (...,)."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # Keras tells 0 from -0 there, for which it takes eighteen times as long.
        return tf.argmax(logits, axis=-1, output_type=tf.int32)
    return ops.argmax(logits, axis=-1)


def masked_sums(losses, right, real):
    """Sums of loss, of right targets and of targets, float32, over `real` ones."""
    real = ops.cast(real, "float32")
    right = ops.cast(right, "float32")
    return tuple(ops.sum(x) for x in (losses * real, right * real, real))
