"""Small models and inputs for tests."""

import keras
import numpy as np
import pytest

import models
from models import (
    attention_kind,
    build_classifier,
    build_encoder_decoder,
    can_encode,
    can_model_language,
)
from models.layers.rotation_dense import RotationDense
from tests.shallow import every_mechanism, shallow_variant

VOCABULARY_SIZE = 40
# No text of the tests is longer.
MAX_LENGTH = 32
SMALL = {
    "architecture": "transevolve",
    "attention": {"name": "factored"},
    "hidden_dim": 32,
    "num_heads": 4,
    "ffn_dim": 64,
    "num_blocks": 2,
    "num_depths": 2,
    "feed_forward": "dense",
    "fidelity": "paper",
    "dropout": 0.0,
}
LITERAL = {"name": "literal"}
TRANSFORMER = {
    "architecture": "transformer",
    "attention": {"name": "softmax"},
    "hidden_dim": 32,
    "num_heads": 4,
    "ffn_dim": 64,
    "num_layers": 2,
    "dropout": 0.0,
}

EACH_ARCHITECTURE = pytest.mark.parametrize(
    "config", [SMALL, TRANSFORMER], ids=["transevolve", "transformer"]
)


def _small_config(name):
    config = shallow_variant(name)
    kind = attention_kind(config)
    if kind is not None:
        config["attention"] = {**config["attention"], **kind.small}
    sizes = {"hidden_dim": 32, "num_heads": 4, "ffn_dim": 64, "dropout": 0.0}
    return {**config, **sizes}


_SMALL = {name: _small_config(name) for name in every_mechanism()}
SMALL_CONFIGS = {name: x for name, x in _SMALL.items() if can_encode(x)}
# Of language models.
CAUSAL_CONFIGS = {name: x for name, x in _SMALL.items() if can_model_language(x)}


def numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def build_any(config, decoder: bool):
    """A classifier or an encoder-decoder whose every weight is random."""
    if decoder:
        model = build_encoder_decoder(config, VOCABULARY_SIZE, 0, MAX_LENGTH)
        return randomize(model)
    return randomize(build_classifier(config, VOCABULARY_SIZE, 4, 0, MAX_LENGTH))


def at_once(function):
    """Compiles a function of arrays as a whole on JAX, which else compiles operations.

    What it closes over, weights too, is a constant there.
    """
    if keras.backend.backend() == "torch":
        # Arithmetic of NumPy's arrays and PyTorch's tensors does not mix.
        return lambda *arrays: function(*keras.tree.map_structure(_tensor, arrays))
    if keras.backend.backend() != "jax":
        return function
    import jax

    return jax.jit(function)


def _tensor(x):
    return keras.ops.convert_to_tensor(x) if isinstance(x, np.ndarray) else x


def draw_no_rotations(monkeypatch):
    """They are no parameters, and take long to draw."""
    monkeypatch.setattr(RotationDense, "_draw", lambda *_, **__: None)
    monkeypatch.setattr(RotationDense, "set_frequencies", lambda *_: None)


def count_parameters(build, *arguments):
    """How many the model has that `build` makes, without drawing any."""
    with (
        keras.StatelessScope(initialize_variables=False),
        pytest.MonkeyPatch.context() as patch,
    ):
        draw_no_rotations(patch)
        return models.count_parameters(build(*arguments))


def compiled(model, inputs):
    """The model's output by XLA, and the shape that was known before it ran."""
    if keras.backend.backend() == "jax":
        import jax

        weights = [variable.value for variable in model.trainable_variables]
        rest = [variable.value for variable in model.non_trainable_variables]
        run = jax.jit(lambda *x: model.stateless_call(weights, rest, *x)[0])
        return numpy(run(*inputs)), jax.eval_shape(run, *inputs).shape
    if keras.backend.backend() == "torch":
        pytest.skip("has no XLA")
    import tensorflow as tf

    run = tf.function(lambda *x: model(*x), jit_compile=True)
    specs = [tf.TensorSpec(x.shape, "int32") for x in inputs]
    shape = run.get_concrete_function(*specs).output_shapes
    return numpy(run(*inputs)), shape.as_list()


def build(num_classes=4, **changes):
    """A small TransEvolve classifier whose every weight is random, gains too."""
    config = {**SMALL, **changes}
    model = build_classifier(
        config, VOCABULARY_SIZE, num_classes, max_length=MAX_LENGTH
    )
    return randomize(model)


def randomize(model, seed=0):
    random = np.random.default_rng(seed)
    for weight in sorted(model.trainable_variables, key=lambda weight: weight.path):
        value = numpy(weight)
        weight.assign(value + random.normal(0, 0.1, value.shape))
    return model


def tokens(batch=3, length=11, padding=(), seed=0):
    """Random ids; `padding` are index pairs that become padding."""
    random = np.random.default_rng(seed)
    ids = random.integers(1, VOCABULARY_SIZE, (batch, length)).astype("int32")
    for index in padding:
        ids[index] = 0
    return ids
