"""Updates against Adam as its paper writes it."""

import keras
import numpy as np
import tensorflow as tf
from ml_collections import ConfigDict

from training.trainer import one_device_trainer

SETTINGS = ConfigDict(
    {
        "learning_rate_max": 3.0,
        "warmup_steps": 5,
        "adam_beta_1": 0.9,
        "adam_beta_2": 0.98,
        "adam_epsilon": 0.1,  # large enough to be seen
    }
)
# Tokens of two sentences, of which the second has ended after one.
TOKENS = np.float32([[1.0, -2.0, 4.0], [3.0, 50.0, 70.0]])
REAL = np.array([[True, True, True], [True, False, False]])


class Slope(keras.Model):
    hidden_dim = 4

    def __init__(self):
        super().__init__()
        self.slope = self.add_weight(shape=(), initializer="ones", name="slope")


def losses(model, batch, training):
    assert training
    loss = model.slope * batch["tokens"]
    return loss, tf.zeros_like(loss, bool), batch["real"]


def test_updates_are_adams_of_the_mean_over_tokens():
    batch = {"tokens": TOKENS, "real": REAL}
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    trainer, iterator = one_device_trainer(Slope, losses, SETTINGS, dataset)

    totals = trainer.train(iterator, 3)

    gradient = TOKENS[REAL].mean()
    slope, mean, variance, sums = 1.0, 0.0, 0.0, 0.0
    for step in range(1, 4):
        sums += slope * TOKENS[REAL].sum()
        mean = 0.9 * mean + 0.1 * gradient
        variance = 0.98 * variance + 0.02 * gradient**2
        rate = 3.0 / 4**0.5 * step * 5**-1.5
        rate *= (1 - 0.98**step) ** 0.5 / (1 - 0.9**step)
        slope -= rate * mean / (variance**0.5 + 0.1)
    np.testing.assert_allclose(trainer.model.slope.numpy(), slope, rtol=1e-5)
    np.testing.assert_allclose(totals.loss, sums, rtol=1e-5)
    assert totals.targets == 3 * REAL.sum()
