"""Loss and accuracy over batches that may hold filler rows."""

from typing import NamedTuple

import tensorflow as tf


class Totals(NamedTuple):
    """Sums over examples.

    Attributes:
      loss: of the cross-entropies, in nats.
      correct: of right answers.
      examples: of real rows.
    """

    loss: float
    correct: float
    examples: float

    def metrics(self) -> dict:
        """Mean loss and accuracy."""
        return {
            "loss": self.loss / self.examples,
            "accuracy": self.correct / self.examples,
        }


def cross_entropy(targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Cross-entropy in nats, (batch,), of logits (batch, classes).

    Negative targets, of filler rows, give the value of class 0: mask it.
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.maximum(targets, 0), tf.cast(logits, tf.float32)
    )
