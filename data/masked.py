"""Batches of texts of which some tokens are hidden."""

import numpy as np
import tensorflow as tf

from data.batches import Batches, HeldBatches

HIDDEN_SHARE = 0.5


class MaskedBatches(HeldBatches):
    """Texts are `inputs`. Those of their tokens that a model is not to see are
    `targets`, (rows, length), which are 0 elsewhere.

    In training each position is hidden with a probability of a half, drawn anew by the
    seed and the number of the batch. In evaluation the same positions of all texts are
    hidden, so that no score depends on batches.

    Args:
      batches: of texts with classes, which are left out.
    """

    def __init__(self, batches: HeldBatches):
        super().__init__(batches.rows, batches.buckets, batches.subset)
        self.fillers = Batches.fillers  # for targets that are tokens, and no classes

    def for_training(self, seed: int, first_batch: int = 0) -> tf.data.Dataset:
        """See `Batches`."""

        def hide(number, batch):
            tokens = batch["inputs"]
            drawn = tf.random.stateless_uniform(tf.shape(tokens), [seed, number])
            drawn = tf.where(tokens == 0, 1.0, drawn)
            # A batch without any target would have no loss.
            first = drawn == tf.reduce_min(drawn)
            return _hidden(batch, (drawn < HIDDEN_SHARE) | first)

        dataset = super().for_training(seed, first_batch)
        return dataset.enumerate(first_batch).map(hide)

    def for_evaluation(self) -> tf.data.Dataset:
        """See `Batches`."""
        length = max(length for _, length in self.shapes)
        hidden = tf.constant(np.random.default_rng(0).random(length) < HIDDEN_SHARE)

        def hide(batch):
            return _hidden(batch, hidden[: tf.shape(batch["inputs"])[1]])

        return super().for_evaluation().map(hide)


def _hidden(batch, hidden):
    tokens = batch["inputs"]
    return {"inputs": tokens, "targets": tf.where(hidden, tokens, 0)}
