"""Models of linear attention: exact weights, random features, states."""

import keras
import numpy as np
import pytest
from keras import ops

from benchmarks.alone import run_alone
from decoding.beam_search import beam_search
from models import base_of, build_classifier, build_encoder_decoder, variant_config
from models.attention import feature_maps
from models.attention.cache import leaves, num_bytes
from models.attention.causal_chunks import CHUNK
from models.attention.feature_maps import FEATURE_MAPS, FeatureMap
from models.attention.linear import LinearOperator
from models.convert import with_attention
from tests.models.builders import (
    SMALL_CONFIGS,
    VOCABULARY_SIZE,
    at_once,
    build_any,
    count_parameters,
    numpy,
    randomize,
    tokens,
)
from tests.shallow import shallow_variant, with_marks

SMALL_SIZES = {"hidden_dim": 32, "num_heads": 4, "ffn_dim": 64, "dropout": 0.0}
FAVOR = variant_config("transformer-linear-favor")["attention"]
LINEAR = [name for name in SMALL_CONFIGS if "-linear" in name]


@pytest.fixture(params=with_marks(LINEAR))
def name(request):
    return request.param


@pytest.mark.jax
@pytest.mark.parametrize("decoder", [False, True], ids=["classifier", "translator"])
def test_exact_weights_carry_over(name, decoder):
    exact = build_any(SMALL_CONFIGS[base_of(name)], decoder)
    linear = with_attention(exact, **SMALL_CONFIGS[name]["attention"])
    assert [weight.path for weight in exact.weights] == [
        weight.path for weight in linear.weights
    ]
    back = with_attention(linear, **SMALL_CONFIGS[base_of(name)]["attention"])
    for weight, other, same in zip(
        exact.weights, linear.weights, back.weights, strict=True
    ):
        np.testing.assert_array_equal(numpy(weight), numpy(other))
        np.testing.assert_array_equal(numpy(weight), numpy(same))


@pytest.mark.jax
@pytest.mark.parametrize("base", ["transevolve-fullff-2", "transformer"])
def test_features_are_redrawn_in_training_alone(base):
    config = SMALL_CONFIGS[f"{base}-linear-favor"]
    config = {**config, "attention": {**config["attention"], "redraw_every": 2}}
    model = randomize(build_classifier(config, VOCABULARY_SIZE, 4))
    x = tokens()
    first, again = numpy(model(x)), numpy(model(x))
    np.testing.assert_array_equal(first, again)
    passes = [numpy(model(x, training=True)) for _ in range(4)]
    # Each draw serves two, the first one too.
    np.testing.assert_array_equal(passes[0], first)
    np.testing.assert_array_equal(passes[0], passes[1])
    np.testing.assert_array_equal(passes[2], passes[3])
    assert (passes[1] != passes[2]).any()
    assert (numpy(model(x)) != passes[3]).any()


@pytest.mark.parametrize("base", ["transevolve-fullff-2", "transformer"])
def test_what_counts_passes_is_no_parameter(base):
    config = SMALL_CONFIGS[f"{base}-linear-favor"]
    redrawn = {**config, "attention": {**config["attention"], "redraw_every": 2}}
    counts = [
        count_parameters(build_classifier, model, VOCABULARY_SIZE, 4)
        for model in (config, redrawn)
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("exact", ["transevolve-fullff-2", "transformer"])
def test_many_features_come_near_the_exact_form(exact):
    model = build_classifier(SMALL_CONFIGS[exact], VOCABULARY_SIZE, 4)
    for weight in model.weights:
        if weight.name in ("query_kernel", "key_kernel"):
            weight.assign(weight * 0.3)  # the error grows with the norms of q and k
    x = tokens(length=12)
    expected = numpy(model.encode(x))

    def error(count):
        attention = SMALL_CONFIGS[f"{exact}-linear-favor"]["attention"]
        linear = with_attention(model, **{**attention, "num_features": count})
        return np.abs(numpy(linear.encode(x)) - expected).mean()

    assert error(8192) < 0.25 * error(64)
    assert error(8192) < 0.02 * np.abs(expected).mean()


@pytest.mark.long
def test_lengths_may_be_unknown(name):
    """As where one graph serves texts of all lengths."""
    import tensorflow as tf

    model = build_any(SMALL_CONFIGS[name], decoder=True)
    texts = [tf.TensorSpec([None, None], tf.int32)] * 2
    call = tf.function(lambda *x: model(*x), input_signature=texts)
    for length in (3, CHUNK + 3):
        x = tokens(length=length), tokens(length=length, seed=1)
        found = numpy(call(*map(tf.constant, x)))
        np.testing.assert_allclose(found, numpy(model(*x)), atol=1e-4)


def states_after(model, length):
    """Shapes of what a search of two hypotheses holds at its end."""
    source_cache = model.source_cache(tokens(batch=1, length=5))
    held = []

    def step(ids, cache, position):
        logits, cache = model.step(ids, source_cache, cache, position)
        held.append([tuple(leaf.value.shape) for leaf in leaves(cache)])
        return logits, cache

    found = beam_search(
        step,
        model.empty_cache(1, 2),
        ops.convert_to_tensor([length]),
        length,
        2,
        start=1,
        end=VOCABULARY_SIZE,  # no hypothesis ends
    )
    assert found.tokens.shape[-1] == length
    return held[-1]


def test_states_do_not_grow(name):
    model = build_encoder_decoder(SMALL_CONFIGS[name], VOCABULARY_SIZE)
    cache = model.empty_cache(1, 2)
    growing, fixed = num_bytes(cache)
    assert growing == 0 and fixed > 0
    empty = [tuple(leaf.value.shape) for leaf in leaves(cache)]
    assert states_after(model, 2) == states_after(model, 6) == empty


@pytest.mark.jax
def test_states_are_float32_in_every_precision(name):
    """Those of a target, before and after a step, and those of a source."""
    config = {**SMALL_CONFIGS[name], "dtype": "mixed_bfloat16"}
    model = build_encoder_decoder(config, VOCABULARY_SIZE)
    ids = tokens(batch=1, length=1)
    caches = at_once(model.source_cache)(tokens(batch=1, length=5))
    empty = model.empty_cache(1, 1)
    step = at_once(lambda caches, cache: model.step(ids, caches, cache, 0)[1])
    held = [leaf.value for leaf in leaves(empty) + leaves(step(caches, empty))]
    held += [array for _, source in caches for array in source]
    assert {keras.backend.standardize_dtype(x.dtype) for x in held} == {"float32"}


@pytest.mark.parametrize("decoder", [False, True], ids=["classifier", "translator"])
def test_bfloat16_is_near(name, decoder):
    """Within shares of the logits' largest, as docs/linear_attention.md says."""
    config = SMALL_CONFIGS[name]
    model = build_any(config, decoder)
    mixed = build_any({**config, "dtype": "mixed_bfloat16"}, decoder)
    mixed.set_weights(model.get_weights())
    texts = [tokens(length=CHUNK + 9, seed=seed) for seed in range(1 + decoder)]
    expected, found = (numpy(ops.cast(m(*texts), "float32")) for m in (model, mixed))
    assert np.any(found != expected)
    errors = np.abs(found - expected) / np.abs(expected).max()
    assert errors.mean() < 0.01
    # A query of DPFP may have few features, and rounding may take them away.
    assert "dpfp" in name or errors.max() < 0.05


MAPS = {
    "elu1": {"feature_map": "elu1"},
    "dpfp3": {"feature_map": "dpfp", "nu": 3},
    "relu": {**FAVOR, "num_features": 32, "kernel": "relu"},
}


@pytest.mark.parametrize(
    "base, hyperparameters",
    [
        pytest.param(
            *(base, hyperparameters),
            id=f"{base}-{name}",
            marks=() if usual == name else pytest.mark.long,
        )
        for base, usual in (
            ("transevolve-randomff-1", "elu1"),
            ("transevolve-fullff-2", "dpfp3"),
            ("transformer", "relu"),
        )
        for name, hyperparameters in MAPS.items()
    ],
)
def test_steps_are_the_full_pass(base, hyperparameters):
    """Of one block and rotations, and of what no variant has."""
    config = {**shallow_variant(base), **SMALL_SIZES}
    config["attention"] = {"name": "linear", **hyperparameters}
    model = build_any(config, decoder=True)
    source, target = tokens(batch=2, length=9), tokens(batch=2, length=6, seed=1)
    expected = numpy(model(source, target))
    source_cache, cache = model.source_cache(source), model.empty_cache(2, 1)
    for position in range(6):
        ids = target[:, position, None]
        logits, cache = model.step(ids, source_cache, cache, position)
        np.testing.assert_allclose(
            numpy(logits)[:, 0], expected[:, position], rtol=0, atol=1e-4
        )


def test_sources_of_any_length_are_sums_of_one_size(name):
    model = build_encoder_decoder(SMALL_CONFIGS[name], VOCABULARY_SIZE)
    short, long = (
        [x.shape for x in _flat(model.source_cache(tokens(length=n)))] for n in (5, 50)
    )
    assert short == long


def _flat(nested):
    if isinstance(nested, tuple | list):
        return [x for part in nested for x in _flat(part)]
    return [nested]


def test_the_variants_are_named():
    assert variant_config("transevolve-fullff-1-linear-dpfp")["attention"] == {
        "name": "linear",
        "feature_map": "dpfp",
        "sum_normalisation": False,
        "attention_normalisation": True,
        "nu": 1,
    }


class Squares(FeatureMap):
    """phi(x) = x^2: a feature map that somebody adds."""

    variants = {"squares": {}}

    def __init__(self, size, seed):
        super().__init__(size, size)

    def queries(self, x):
        return ops.square(x)


def test_a_feature_map_is_one_line_in_a_registry(monkeypatch):
    monkeypatch.setitem(FEATURE_MAPS, "squares", Squares)
    monkeypatch.setattr(
        LinearOperator, "variants", feature_maps.variants(FEATURE_MAPS, False)
    )
    for base in ("transevolve-randomff-1", "transformer"):
        config = {**shallow_variant(f"{base}-linear-squares"), **SMALL_SIZES}
        model = build_any(config, decoder=True)
        source, target = tokens(length=9), tokens(length=6, seed=1)
        expected = numpy(model(source, target))
        step, _ = model.step(
            target[:, :1], model.source_cache(source), model.empty_cache(3, 1), 0
        )
        np.testing.assert_allclose(numpy(step)[:, 0], expected[:, 0], atol=1e-4)


def decode(name, length):
    """Shapes of the states at the end of a search, and the most that was held."""
    import tensorflow as tf

    from benchmarks.alone import peak_bytes

    model = build_encoder_decoder(SMALL_CONFIGS[name], VOCABULARY_SIZE)
    states = tf.function(lambda: states_after(model, length))()
    return keras.tree.map_structure(int, states), peak_bytes()


@pytest.mark.long
def test_ten_thousand_tokens_take_no_more_memory(name):
    (states, before), (same, after) = (
        run_alone("decode", decode, name, length) for length in (100, 10_000)
    )
    assert states == same
    assert after - before < 20e6
