"""Batches of texts of which a part is hidden."""

import numpy as np
import tensorflow as tf

from data.batches import Batches, HeldBatches

SHARE = 0.5


class MaskedBatches(Batches):
    """Texts, as `inputs`, and those of their tokens that a model is not to see, as
    `targets`, (rows, length), which are 0 elsewhere.

    In training half of the places are hidden, drawn anew by the seed and the number of
    the batch. In evaluation the same places of all texts are hidden, whatever the
    batches, so that no score depends on them.

    Args:
      batches: of texts with classes, which are left out.
    """

    fillers = {"inputs": 0, "targets": 0}

    def __init__(self, batches: HeldBatches):
        self._batches = batches
        self.buckets = batches.buckets
        self.num_batches = batches.num_batches
        self.num_examples = batches.num_examples

    @property
    def fingerprint(self):
        return self._batches.fingerprint

    def train(self, seed: int, first_batch: int = 0) -> tf.data.Dataset:
        """See `Batches`."""

        def hide(number, batch):
            shape = tf.shape(batch["inputs"])
            drawn = tf.random.stateless_uniform(shape, [seed, number])
            return _hidden(batch, drawn < SHARE)

        dataset = self._batches.train(seed, first_batch)
        return dataset.enumerate(first_batch).map(hide)

    def evaluate(self) -> tf.data.Dataset:
        """See `Batches`."""
        length = max(length for _, length in self.shapes)
        places = tf.constant(np.random.default_rng(0).random(length) < SHARE)

        def hide(batch):
            return _hidden(batch, places[: tf.shape(batch["inputs"])[1]])

        return self._batches.evaluate().map(hide)


def _hidden(batch, places):
    tokens = batch["inputs"]
    return {"inputs": tokens, "targets": tf.where(places, tokens, 0)}
