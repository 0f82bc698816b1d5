"""A Transformer's encoder whose layers share one attention."""

import keras
import numpy as np
import pytest
from keras import ops
from ml_collections import ConfigDict

import models
from common.errors import UserError
from models.attention.heads import merge_heads, split_heads
from tests.models.builders import (
    SMALL_CONFIGS,
    TRANSFORMER,
    build_any,
    numpy,
    tokens,
)
from tests.models.gradients import with_gradients
from tests.models.test_factored_graph import square_tensors
from tests.shallow import with_marks

pytestmark = pytest.mark.jax

SOURCE = tokens(length=9, padding=[(1, slice(6, None))])
SHARED = {**TRANSFORMER, "num_layers": 2, "sharing": "attention"}
HEADS = SHARED["num_heads"]


def written_out(encoder, x, mask, post=False, causal=False):
    """Attention weights of the first layer, times the values of each, in Euler's steps;
    differentiated as usual."""
    weights = None
    for layer in encoder.layers:
        normed = x if post else layer.attention_norm(x)
        if weights is None:
            projected = layer.attention.query_key_value(normed)
            queries, keys = (
                split_heads(part, HEADS) for part in ops.split(projected, 2, axis=-1)
            )
            scores = ops.einsum("bhns,bhms->bhnm", queries, keys) / np.sqrt(8)
            scores += -1e9 * ops.cast(ops.logical_not(mask), "float32")[:, None, None]
            if causal:
                scores = ops.where(np.tri(x.shape[1], dtype=bool), scores, -1e9)
            weights = ops.softmax(scores)
        values = split_heads(layer.value_projection(normed), HEADS)
        attended = layer.output_projection(merge_heads(ops.matmul(weights, values)))
        x = layer.attention_norm(x + attended) if post else x + attended
        if post:
            x = layer.feed_forward_norm(x + layer.feed_forward(x))
        else:
            x = x + layer.feed_forward(layer.feed_forward_norm(x))
    return encoder.output_norm(x)


@pytest.mark.parametrize("norm, use", [(None, "self"), ("post", "causal")])
def test_equals_the_definition_and_so_do_its_gradients(norm, use):
    model = build_any({**SHARED, "norm": norm, "use": use}, decoder=False)
    mask = ops.not_equal(SOURCE, 0)

    def loss(call):
        logits = call(SOURCE)
        return ops.mean(logits * ops.cast(ops.arange(4), logits.dtype)), logits

    (_, logits), slopes = with_gradients(model, loss)
    with pytest.MonkeyPatch.context() as patch:

        def call(x, padding_mask, training):
            return written_out(model.encoder, x, mask, norm == "post", use == "causal")

        patch.setattr(model.encoder, "call", call)
        (_, expected), expected_slopes = with_gradients(model, loss)
    np.testing.assert_allclose(numpy(logits), numpy(expected), rtol=0, atol=1e-5)
    assert slopes.keys() == expected_slopes.keys()
    for path, slope in expected_slopes.items():
        np.testing.assert_allclose(slopes[path], slope, rtol=0, atol=2e-6, err_msg=path)
        assert np.abs(slope).max() > 1e-5, path


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    with_marks(
        name
        for name, config in SMALL_CONFIGS.items()
        if config["architecture"] == "transformer"
        and config["attention"]["name"] != "none"
    ),
)
def test_a_layer_that_shares_with_none_is_a_transformers(name):
    config = {**SMALL_CONFIGS[name], "num_layers": 1}
    shared, usual = (
        build_any({**config, "sharing": sharing}, decoder=False)
        for sharing in ("attention", None)
    )
    values = {weight.path: numpy(weight) for weight in shared.weights}
    for weight in usual.weights:
        layer, _, last = weight.path.rpartition("/attention/")
        if last.endswith("value/kernel"):
            parts = [values.pop(f"{layer}/value_projection/kernel")]
            asking = last.replace("_value/", "/")
            if asking != last:
                parts.insert(0, values.pop(f"{layer}/attention/{asking}"))
            weight.assign(np.concatenate(parts, axis=-1))
        else:
            weight.assign(values.pop(weight.path))
    assert not values
    np.testing.assert_allclose(
        numpy(shared(SOURCE)), numpy(usual(SOURCE)), rtol=0, atol=1e-5
    )


def test_each_stage_of_a_step_reads_the_same_attention():
    model = build_any({**SHARED, "residual_step": "rk2", "num_layers": 1}, False)
    encoder, (layer,) = model.encoder, model.encoder.layers
    x = np.random.default_rng(0).normal(size=(2, 5, 32))
    x = ops.convert_to_tensor(x.astype("float32"))
    seen = layer.attention_norm(x)
    state = layer.attention(seen, seen)

    def attend(x, number):
        values = layer.value_projection(layer.attention_norm(x))
        return layer.output_projection(state.read(number, values))

    def transform(x):
        return layer.feed_forward(layer.feed_forward_norm(x))

    y = x + attend(x + attend(x, 0) / 2, 1)
    y = y + transform(y + transform(y) / 2)
    expected = encoder.output_norm(y)
    np.testing.assert_allclose(numpy(encoder(x)), numpy(expected), rtol=0, atol=1e-5)


def test_padding_changes_nothing():
    model = build_any(SHARED, decoder=False)
    longer = np.pad(SOURCE, ((0, 0), (0, 4)))
    np.testing.assert_allclose(
        numpy(model(longer)), numpy(model(SOURCE)), rtol=0, atol=1e-5
    )


@pytest.mark.slow
def test_a_translators_encoder_shares_and_saves(tmp_path):
    model = build_any(SHARED, decoder=True)
    paths = [weight.path for weight in model.weights if "query" in weight.path]
    assert sum("/encoder/" in path for path in paths) == 1
    assert sum("/decoder/" in path for path in paths) == 2 * SHARED["num_layers"]
    inputs = SOURCE, tokens(length=7, seed=1)
    model.save(tmp_path / "model.keras")
    twin = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(numpy(twin(*inputs)), numpy(model(*inputs)))


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="traces a TensorFlow graph"
)
def test_two_layers_have_the_square_tensors_of_one():
    # Scores and their softmax; the gradients of both.
    model = build_any({**SHARED, "dropout": 0.1}, decoder=False)
    assert len(square_tensors(model)) == 4


def test_what_is_no_operator_is_refused():
    config = ConfigDict({"model": {**SHARED, "attention": {"name": "none"}}})
    with pytest.raises(UserError, match="model.sharing: expected another, beside"):
        models.check(config)
