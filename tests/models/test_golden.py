"""The fidelity `official` against the authors' code."""

import numpy as np
import pytest
from keras import ops

from models.layers.embedding import sinusoidal_positions
from tests.models import golden as goldens
from tests.models.gradients import with_gradients

pytestmark = pytest.mark.jax


@pytest.fixture(scope="module", params=["full", "random"])
def golden(request):
    return goldens.load(f"official_classifier_{request.param}")


@pytest.fixture(scope="module", params=["literal", "factored"])
def form(request):
    return request.param


# No test changes it.
@pytest.fixture(scope="module")
def model(golden, form):
    return goldens.build(golden, form)


def encode(model, tokens):
    return ops.convert_to_numpy(model.encode(tokens))


def test_outputs_are_the_released_code_s(golden, model):
    encoded = encode(model, golden["tokens"])
    np.testing.assert_allclose(encoded, golden["out/encoded"], rtol=0, atol=1e-5)
    probabilities = ops.convert_to_numpy(ops.softmax(model(golden["tokens"])))
    np.testing.assert_allclose(
        probabilities, golden["out/probabilities"], rtol=0, atol=1e-5
    )


def test_outputs_at_real_tokens_under_padding(golden, model):
    real = golden["padded/tokens"] != 0
    assert not real.all()
    encoded = encode(model, golden["padded/tokens"])
    expected = golden["padded/out/encoded"]
    np.testing.assert_allclose(encoded[real], expected[real], rtol=0, atol=1e-5)


def test_loss_and_gradients(golden, model, form):
    tokens = golden["tokens"]

    # The loss of the golden run: the mean surprise at class 1.
    def loss(call):
        return -ops.mean(ops.log_softmax(call(tokens))[:, 1]), ()

    (value, _), found = with_gradients(model, loss)
    np.testing.assert_allclose(float(value), golden["out/loss"], rtol=1e-3)
    attention = "encoder/block_0/attention"
    width = model.hidden_dim
    for side in ("query", "key"):
        expected = golden[f"grad/{attention}/{side}_kernel"].T
        _assert_close(found[f"{attention}/{side}_kernel"], expected[:width])
        if side == "query":
            _assert_close(found[f"{attention}/query_time_kernel"], expected[width:])
        elif form == "literal":
            dead = found[f"{attention}/key_time_kernel"]
            assert np.linalg.norm(dead) < 1e-6 * np.linalg.norm(expected)
    _assert_close(
        found[f"{attention}/time_coefficients"][1],
        golden["grad/encoder/block_0/step_1/attention/time_coefficients"],
    )


def _assert_close(found, expected):
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < 1e-3, error


def test_positions_are_the_released_code_s():
    expected = goldens.load("official_positions.npz")["table"]
    length, hidden_dim = expected.shape
    found = ops.convert_to_numpy(sinusoidal_positions(np.arange(length), hidden_dim))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
