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
    losses = tf.nn.softmax_cross_entropy_with_logits(
        tf.one_hot(targets, classes, high, low), tf.cast(logits, tf.float32)
    )
    entropy = -sum(
        count * p * math.log(p) for count, p in ((1, high), (classes - 1, low)) if p
    )
    return losses - entropy
