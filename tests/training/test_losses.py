"""Losses against their definitions and the authors' code."""

import keras
import numpy as np
import pytest
from keras import ops

from tests.models.golden import build_seq2seq, load
from tests.models.gradients import by_inputs
from training.losses import cross_entropy, first_choice, smoothed_cross_entropy


@pytest.mark.parametrize("form", ["literal", "factored"])
def test_golden_smoothed_loss(form):
    golden = load("official_seq2seq_full")
    labels = golden["labels"]
    logits = build_seq2seq(golden, form)(golden["source"], golden["target"])
    losses = ops.convert_to_numpy(smoothed_cross_entropy(labels, logits, 0.1))
    found = losses[labels != 0].mean()
    expected = float(golden["out/label_smoothed_loss_0.1"])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_smoothing_is_its_definition(smoothing):
    random = np.random.default_rng(0)
    logits = random.normal(0, 3, (2, 4, 7)).astype("float32")
    targets = random.integers(0, 7, (2, 4)).astype("int32")
    soft = np.full(logits.shape, smoothing / 6)
    np.put_along_axis(soft, targets[..., None], 1 - smoothing, axis=2)
    shifted = logits - logits.max(-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    entropy = -(soft * np.log(np.maximum(soft, 1e-30))).sum(-1)
    expected = -(soft * log_probs).sum(-1) - entropy
    upstream = random.normal(0, 1, (2, 4, 1)).astype("float32")
    losses = smoothed_cross_entropy(targets, ops.array(logits), smoothing)

    def total(logits):
        losses = smoothed_cross_entropy(targets, logits, smoothing)
        return ops.sum(losses * upstream[..., 0])

    (gradient,) = by_inputs(total, ops.array(logits))
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        gradient, upstream * (np.exp(log_probs) - soft), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_far_logits_are_safe(dtype):
    logits = ops.cast([[1e4, -1e4, 0.0]], dtype)

    def loss(logits):
        return ops.sum(smoothed_cross_entropy([1], logits, 0.1))

    np.testing.assert_allclose(loss(logits), 0.9 * 2e4 + 0.05 * 1e4, rtol=1e-2)
    (gradient,) = by_inputs(loss, logits)
    assert keras.backend.standardize_dtype(gradient.dtype) == dtype
    gradient = ops.convert_to_numpy(ops.cast(gradient, "float32"))
    np.testing.assert_allclose(gradient, [[0.95, -0.9, -0.05]], atol=1e-2)


def test_the_first_of_equal_choices_counts():
    logits = ops.array([[0.0, 2.0, 2.0], [-1.0, -2.0, -1.0]])
    assert ops.convert_to_numpy(first_choice(logits)).tolist() == [1, 0]


def test_smallest_smoothed_loss_is_zero():
    classes, smoothing = 5, 0.1
    logits = np.log([[0.9, *[smoothing / (classes - 1)] * (classes - 1)]])
    loss = smoothed_cross_entropy([0], logits.astype("float32"), smoothing)
    np.testing.assert_allclose(loss, 0, atol=1e-6)


def test_negative_targets_give_a_finite_value():
    losses = cross_entropy(ops.array([-1]), ops.zeros([1, 3]))
    assert np.isfinite(losses).all()
