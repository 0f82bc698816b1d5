"""What a Transformer may have besides the published baseline's."""

import numpy as np
import pytest
from keras import ops
from ml_collections import ConfigDict

import models
from common.errors import UserError
from tests.models.builders import TRANSFORMER, build_any, numpy, tokens

pytestmark = pytest.mark.jax

SOURCE = tokens(length=9, padding=[(1, slice(6, None))])


def layer_norm(layer, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    z = (x - mean) / np.sqrt(variance + layer.epsilon)
    return z * numpy(layer.gamma) + numpy(layer.beta)


def test_a_post_norm_layer_normalises_each_sum():
    model = build_any({**TRANSFORMER, "norm": "post", "num_layers": 1}, decoder=False)
    (layer,) = model.encoder.layers
    x = np.random.default_rng(0).normal(size=(2, 5, 32)).astype("float32")
    attended = layer.attention(x, x).read(0, x)
    attended = numpy(layer.output_projection(attended))
    middle = layer_norm(layer.attention_norm, x + attended)
    transformed = numpy(layer.feed_forward(ops.convert_to_tensor(middle)))
    expected = layer_norm(layer.feed_forward_norm, middle + transformed)
    np.testing.assert_allclose(numpy(layer(x)), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(numpy(model.encoder(x)), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("decoder", [False, True], ids=["classifier", "translator"])
def test_shared_layers_are_one_layer_many_times(decoder):
    inputs = (SOURCE, tokens(length=7, seed=1))[: 1 + decoder]
    config = {**TRANSFORMER, "num_layers": 3}
    shared = build_any({**config, "sharing": "weights"}, decoder)
    whole = build_any(config, decoder)
    values = {weight.path: numpy(weight) for weight in shared.weights}
    for weight in whole.weights:
        path = weight.path.replace("layer_1", "layer_0").replace("layer_2", "layer_0")
        weight.assign(values.pop(path) if "layer" not in path else values[path])
    assert all("layer_0" in path for path in values)
    outputs = [numpy(model(*inputs)) for model in (shared, whole)]
    np.testing.assert_allclose(*outputs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("norm", [None, "post"])
@pytest.mark.parametrize("decoder", [False, True], ids=["classifier", "translator"])
def test_depth_scaled_kernels_are_smaller_layer_by_layer(decoder, norm):
    config = {**TRANSFORMER, "num_layers": 3, "norm": norm}

    def initial(**changes):
        build = models.build_encoder_decoder if decoder else _classifier
        model = build({**config, **changes}, 40, max_length=32)
        return {weight.path: numpy(weight) for weight in model.weights}

    usual, scaled = initial(), initial(initialization="depth-scaled")
    assert usual.keys() == scaled.keys()
    depths = {1: 0, 2: 0, 3: 0}
    for path, weight in usual.items():
        scale = 1.0
        for depth in depths:
            if f"layer_{depth - 1}/" in path and path.endswith("/kernel"):
                scale, depths[depth] = depth**-0.5, depths[depth] + 1
        np.testing.assert_allclose(scaled[path], scale * weight, rtol=0, atol=1e-6)
    # Projections of the attentions, of what is attended, and the feed-forward's two.
    assert set(depths.values()) == {4 + 7 if decoder else 4}


def _classifier(config, vocabulary_size, max_length):
    return models.build_classifier(config, vocabulary_size, 4, max_length=max_length)


def test_layers_that_are_one_have_no_depth_to_scale_by():
    config = {**TRANSFORMER, "sharing": "weights", "initialization": "depth-scaled"}
    with pytest.raises(UserError, match="model.initialization: expected none given"):
        models.check(ConfigDict({"model": config}))


@pytest.mark.parametrize("positions", [None, "sinusoidal", "relative-sinusoids"])
def test_an_odd_width_has_no_positions_of_sines(positions):
    config = {**TRANSFORMER, "hidden_dim": 15, "num_heads": 5, "positions": positions}
    with pytest.raises(UserError, match="model.hidden_dim: expected an even number"):
        models.check(ConfigDict({"model": config}))
