"""Updates against Adam as its paper writes it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ml_collections import ConfigDict

from common.errors import UserError
from data.batches import fill_rows
from models import build_classifier, variant_config
from tasks.classification import ClassificationTask
from tasks.task import Task
from training.backends import one_device_trainer
from training.metrics import NotFiniteError

SETTINGS = ConfigDict(
    {
        "learning_rate_max": 3.0,
        "warmup_steps": 5,
        "adam_beta_1": 0.9,
        "adam_beta_2": 0.98,
        "adam_epsilon": 0.1,  # large enough to be seen
        "accumulate_steps": 1,
        "clip_norm": None,
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


class SlopeTask:
    """The loss of a token is the slope times the token."""

    initial_state = Task.initial_state

    @staticmethod
    def losses(model, batch, state, training):
        assert training
        loss = model.slope * batch["tokens"]
        return loss, tf.zeros_like(loss, bool), batch["real"], state


def test_updates_are_adams_of_the_mean_over_tokens():
    batch = {"tokens": TOKENS, "real": REAL}
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    trainer, iterator = one_device_trainer(Slope, SlopeTask, SETTINGS, dataset)

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


def test_weights_that_have_left_the_numbers_are_not_to_be_saved():
    batch = {"tokens": TOKENS, "real": REAL}
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    trainer, _ = one_device_trainer(Slope, SlopeTask, SETTINGS, dataset)
    trainer.check_weights()
    trainer.model.slope.assign(np.inf)
    with pytest.raises(
        NotFiniteError, match="step 0: expected finite weights, .*slope"
    ):
        trainer.check_weights()


def classifier():
    config = variant_config("transevolve-fullff-1")
    sizes = {
        "num_depths": 2,
        "hidden_dim": 8,
        "ffn_dim": 16,
        "num_heads": 2,
        "dropout": 0.0,
    }
    return build_classifier({**config, **sizes}, vocabulary_size=9, num_classes=3)


def trained(**changes):
    """Weights after three updates, and the totals; the batch has ten rows, of which
    parts have unlike numbers of targets."""
    random = np.random.default_rng(0)
    batch = {
        "inputs": random.integers(0, 9, (10, 7)).astype("int32"),
        "targets": np.int32([0, 1, 2, 0, 1, 2, 0, -1, -1, -1]),
    }
    settings = ConfigDict({**SETTINGS, "adam_epsilon": 1e-3, **changes})
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    keras.utils.set_random_seed(0)
    fillers = {"inputs": 0, "targets": -1}
    trainer, iterator = one_device_trainer(
        classifier, ClassificationTask, settings, dataset, fillers=fillers
    )
    totals = trainer.train(iterator, 3)
    weights = [weight.numpy() for weight in trainer.model.trainable_variables]
    return weights, totals


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts, clip_norm", [(5, 0.01), pytest.param(4, None, marks=pytest.mark.long)]
)
def test_parts_of_a_batch_are_as_the_whole(parts, clip_norm):
    expected, totals = trained(clip_norm=clip_norm)
    found, same = trained(accumulate_steps=parts, clip_norm=clip_norm)
    np.testing.assert_allclose(same, totals, rtol=1e-5)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_gradient_is_cut_to_its_norm():
    """Adam forgets the gradient's length, but for its epsilon."""
    batch = {"tokens": TOKENS, "real": REAL}
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    settings = ConfigDict({**SETTINGS, "clip_norm": 0.25})
    trainer, iterator = one_device_trainer(Slope, SlopeTask, settings, dataset)
    trainer.train(iterator, 1)
    assert trainer.gradient_norm == pytest.approx(TOKENS[REAL].mean())
    rate = 3.0 / 4**0.5 * 5**-1.5 * (1 - 0.98) ** 0.5 / (1 - 0.9)
    step = rate * 0.1 * 0.25 / ((0.02 * 0.25**2) ** 0.5 + 0.1)
    assert float(trainer.model.slope.numpy()) == pytest.approx(1 - step, rel=1e-5)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_is_not_finite_ends_training_with_its_step(bad):
    tokens = [TOKENS, TOKENS, np.full_like(TOKENS, bad), TOKENS]
    batches = {"tokens": np.stack(tokens), "real": np.stack([REAL] * 4)}
    dataset = tf.data.Dataset.from_tensor_slices(batches)
    trainer, iterator = one_device_trainer(Slope, SlopeTask, SETTINGS, dataset)
    message = r"^step 3: expected a finite loss and gradient, found a loss of (inf|nan)"
    with pytest.raises(NotFiniteError, match=message) as error:
        trainer.train(iterator, 4)
    assert f"learning rate of {float(trainer.schedule(2)):g}" in str(error.value)
    assert isinstance(error.value, UserError)


def test_rows_are_filled_up():
    batch = {"inputs": np.ones([5, 2], "int32"), "targets": np.zeros(5, "int32")}
    dataset = tf.data.Dataset.from_tensors(batch)
    assert fill_rows(dataset, 1, {}) is dataset
    (found,) = fill_rows(dataset, 4, {"inputs": 0, "targets": -1})
    assert found["inputs"].shape == (8, 2)
    assert found["inputs"].numpy().sum() == 10
    assert found["targets"].numpy().tolist() == [0] * 5 + [-1] * 3
