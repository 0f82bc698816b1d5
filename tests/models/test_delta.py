"""The delta rule, in chunks and at lengths, strengths and keys that are hard for it."""

import keras
import numpy as np
import pytest
from keras import ops
from ml_collections import ConfigDict

from common.errors import UserError
from models import variant_config
from models.attention import causal_chunks
from models.attention.delta import DeltaOperator
from models.attention.propagation import states_after, states_before, steps
from tests.models import test_attention
from tests.models.builders import numpy
from tests.models.operator_checks import (
    assert_dynamic_lengths_serve,
    assert_mixed_precision_is_near,
)
from tests.models.test_operators import (
    assert_gradients_equal_differences,
    assert_reads_equal_the_definition,
    draw,
    make,
    padding,
    reads,
    written_out,
)

pytestmark = pytest.mark.jax

ELU = {"feature_map": "elu1", "largest_strength": 1}
DPFP = {"feature_map": "dpfp", "nu": 1, "largest_strength": 2}
DIVIDED = {**ELU, "attention_normalisation": True}
UNNORMALISED = {**ELU, "sum_normalisation": False}
TANH = {**UNNORMALISED, "feature_map": "tanh"}


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(causal_chunks, "CHUNK", 4)


@pytest.mark.parametrize("length", [5, 8, 14, 37])
@pytest.mark.parametrize(
    "hyperparameters",
    [ELU, DPFP, DIVIDED, TANH],
    ids=["elu1", "dpfp", "divided", "tanh"],
)
def test_chunks_that_do_and_do_not_divide(small_chunks, hyperparameters, length):
    operator, layer = make("delta", hyperparameters, "causal", length)
    arguments = "delta", operator, layer, hyperparameters, length
    assert_reads_equal_the_definition(*arguments)
    assert_gradients_equal_differences(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 300, pytest.param(2000, marks=pytest.mark.long)])
def test_long_texts(length):
    operator, layer = make("delta", ELU, "causal", length)
    arrays, mask = draw(layer, length), padding(length)
    if length == 1:
        mask[:] = True
    expected = written_out("delta", operator, ELU, arrays, mask)
    outputs = numpy(reads(operator, layer, arrays, mask))
    np.testing.assert_allclose(outputs[:, mask], expected[:, mask], rtol=0, atol=1e-5)


@pytest.mark.parametrize("strength", [-50.0, 50.0], ids=["zero", "one"])
def test_strengths_at_their_ends(small_chunks, strength):
    """Of 0 nothing is written; of 1 a key reads what was written last."""
    operator, layer = make("delta", ELU, "causal")
    operator.strength_kernel.assign(np.full(operator.strength_kernel.shape, strength))
    arrays, mask = draw(layer), padding()
    arrays["x"] = np.abs(arrays["x"]) + 1
    arrays["queries"] = arrays["keys"]
    outputs = numpy(reads(operator, layer, arrays, mask))
    expected = written_out("delta", operator, ELU, arrays, mask)
    np.testing.assert_allclose(outputs[:, mask], expected[:, mask], rtol=0, atol=1e-5)
    if strength < 0:
        np.testing.assert_allclose(outputs, 0, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("hyperparameters", [ELU, DPFP], ids=["elu1", "dpfp"])
def test_keys_that_repeat(hyperparameters, noise):
    """One key again and again: T takes back at each position what the one before put
    there, and its entries stay small."""
    length = 200
    operator, layer = make("delta", hyperparameters, "causal", length)
    arrays, mask = draw(layer, length), padding(length)
    keys = arrays["keys"]
    arrays["keys"] = (keys[:, :, :1] + noise * keys).astype("float32")
    expected = written_out("delta", operator, hyperparameters, arrays, mask)
    outputs = numpy(reads(operator, layer, arrays, mask))
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(
        outputs[:, mask], expected[:, mask], rtol=0, atol=1e-5 * scale
    )


def test_features_that_are_all_zero(small_chunks):
    operator, layer = make("delta", DPFP, "causal")
    arrays, mask = draw(layer), padding()
    arrays["keys"][:, :, 3:7] = 0
    arrays["queries"][:, :, 5] = 0
    outputs = numpy(reads(operator, layer, arrays, mask))
    expected = written_out("delta", operator, DPFP, arrays, mask)
    np.testing.assert_allclose(outputs[:, mask], expected[:, mask], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(outputs[:, :, 5], 0)


@pytest.mark.parametrize("architecture", ["transformer", "transevolve"])
@pytest.mark.parametrize("hyperparameters", [DIVIDED, TANH], ids=["divided", "tanh"])
def test_steps_equal_the_parallel_form(recent, architecture, hyperparameters):
    config = {"name": "delta", **hyperparameters}
    test_attention.test_steps_equal_the_parallel_form(architecture, config, recent)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
def test_states_pass_as_in_a_loop(count):
    random = np.random.default_rng(0)
    transitions = random.normal(size=(2, 2, count, 3, 3)).astype("float32")
    x = random.normal(size=(2, 2, count, 3, 5)).astype("float32")
    before, after = np.zeros_like(x), np.zeros_like(x)
    for c in range(1, count):
        before[:, :, c] = (
            transitions[:, :, c - 1] @ before[:, :, c - 1] + x[:, :, c - 1]
        )
        d = count - 1 - c
        turned = transitions[:, :, d + 1].swapaxes(-1, -2)
        after[:, :, d] = turned @ after[:, :, d + 1] + x[:, :, d + 1]
    levels = steps(ops.convert_to_tensor(transitions))
    x = ops.convert_to_tensor(x)
    for states, expected in ((states_before, before), (states_after, after)):
        np.testing.assert_allclose(
            numpy(states(levels, x)), expected, rtol=1e-4, atol=1e-4
        )


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="static shapes elsewhere"
)
def test_dynamic_lengths_serve(small_chunks):
    layer, _ = test_attention.make("transformer", {"name": "delta", **ELU}, "causal")
    random = np.random.default_rng(0)
    texts = [
        random.normal(size=(2, length, layer.hidden_dim)).astype("float32")
        for length in (3, 4, 11, 30)
    ]
    assert_dynamic_lengths_serve(layer, texts)


def test_mixed_precision_is_near(small_chunks):
    config = {"name": "delta", **ELU}
    layer, _ = test_attention.make("transformer", config, "causal")
    mixed, _ = test_attention.make(
        "transformer", config, "causal", dtype="mixed_bfloat16"
    )
    x = np.random.default_rng(0).normal(size=(2, 14, layer.hidden_dim))
    assert_mixed_precision_is_near(layer, mixed, x.astype("float32"))


@pytest.mark.parametrize("feature_map, normalised", [("favor", False), ("tanh", True)])
def test_features_that_need_or_refuse_a_sum(feature_map, normalised):
    model = variant_config(f"transformer-delta-{feature_map}")
    config = ConfigDict({"model": model})
    DeltaOperator.check(config)
    config.model.attention.sum_normalisation = normalised
    expected = f"sum_normalisation: expected {not normalised} with .*{feature_map}"
    with pytest.raises(UserError, match=expected):
        DeltaOperator.check(config)
