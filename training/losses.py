"""Losses in nats, each item's own: who averages also masks."""

import math

import tensorflow as tf


def cross_entropy(targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Cross-entropy, (...,), of logits (..., classes).

    Negative targets, of filler rows, give the value of class 0: mask it.
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.maximum(targets, 0), tf.cast(logits, tf.float32)
    )


def smoothed_cross_entropy(
    targets: tf.Tensor, logits: tf.Tensor, smoothing: float
) -> tf.Tensor:
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

    # TensorFlow's own makes more arrays as large as the logits, and takes twice the
    # time on a CPU where operations are deterministic.
    @tf.custom_gradient
    def loss(logits):
        shifted = logits - tf.reduce_max(logits, axis=-1, keepdims=True)
        exponentials = tf.exp(shifted)
        total = tf.reduce_sum(exponentials, axis=-1, keepdims=True)
        target_logit = tf.gather(shifted, targets, batch_dims=shifted.shape.rank - 1)
        expected = (high - low) * target_logit + low * tf.reduce_sum(shifted, axis=-1)

        def backward(d_loss):
            d_loss = d_loss[..., None]
            smoothed = tf.one_hot(targets, classes, high, low)
            return d_loss * (exponentials / total - smoothed)

        return tf.math.log(total[..., 0]) - expected - entropy, backward

    return loss(tf.cast(logits, tf.float32))


def masked_sums(losses, right, real):
    """Sums of loss, of right targets and of targets, float32, over `real` ones."""
    real = tf.cast(real, tf.float32)
    right = tf.cast(right, tf.float32)
    return tuple(tf.reduce_sum(x) for x in (losses * real, right * real, real))
