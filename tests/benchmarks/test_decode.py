"""What benchmark.py decode yields, on models and lengths that take seconds."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from benchmarks import decode
from common.errors import UserError
from decoding.beam_search import beam_search
from models import build_encoder_decoder, build_language_model
from models.attention.cache import SlotMap
from tests.benchmarks.turns import HEADS, WIDTH, made_up
from tests.models.builders import (
    CAUSAL_CONFIGS,
    SMALL,
    TRANSFORMER,
    randomize,
    tokens,
)
from tests.shallow import LAYERS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]


def test_a_row_has_seconds_ratios_and_growth(monkeypatch):
    monkeypatch.setattr(decode, "VOCABULARY_SIZE", 50)
    # A second for the encoder and one a step; three times that without a cache.
    factor = {"transformer": 2.0, "transevolve-randomff-1": 1.0}

    def seconds(call):
        name, length = call
        bare = name.removesuffix(decode.RECOMPUTED)
        return [(3 if bare != name else 1) * factor[bare] * (1 + length)] * 3

    made_up(monkeypatch, decode, seconds)
    # What is searched, test_recomputing and test_scripts.py have.
    monkeypatch.setattr(decode, "_search", lambda *_: lambda sources, length: None)
    monkeypatch.setattr(decode, "_encoding", lambda *_: lambda: None)
    found = list(decode.measure(list(factor), [3, 20], "small", 2, 2, 5))
    expected = [(name, length) for name in factor for length in (3, 20)]
    assert [(row["model"], row["length"]) for row in found] == expected
    for row in found:
        taken = factor[row["model"]] * (1 + row["length"])
        assert row["seconds"] == taken
        assert row["tokens_per_second"] == round(2 * row["length"] / taken, 1)
        assert row["sentences_per_second"] == round(2 / taken, 2)
        assert row["milliseconds_per_step"] == 1000 * factor[row["model"]]
        assert row["growth_of_step"] == 1 and row["ratio_to_recomputing"] == 3
        assert row["ratio_to_transformer"] == 2 / factor[row["model"]]
    # float32: keys and values of each layer; K, b^l and values of one block.
    assert found[0]["cache_bytes_per_token"] == 4 * LAYERS * 2 * WIDTH
    slots = 2 * WIDTH + LAYERS * (HEADS + WIDTH)
    assert found[2]["cache_bytes_per_token"] == 4 * slots


def test_steps_are_those_since_the_length_before():
    seconds = {("m", 0): [1.0, 2.0], ("m", 10): [2.0, 4.0], ("m", 30): [8.0, 8.0]}
    steps = decode._milliseconds_per_step(seconds, "m", [10, 30])
    assert steps == {10: [100.0, 200.0], 30: [300.0, 200.0]}


def test_decode_needs_rising_lengths():
    with pytest.raises(UserError, match="--lengths.*rising.*64, 16"):
        list(decode.measure(["transformer"], [64, 16]))


def test_language_models_alone_are_causal():
    measured = decode.measure(["transformer-linformer"], [4], causal=True)
    with pytest.raises(UserError, match="--models.*transformer-linformer"):
        next(measured)


def test_the_state_of_the_delta_rule_has_one_size(monkeypatch):
    monkeypatch.setattr(decode, "VOCABULARY_SIZE", 50)
    names = ["transformer", "transformer-delta"]
    settings = {"causal": True, "recompute": False, "rounds": 1, "beam_size": 1}
    rows = list(decode.measure(names, [2, 4], "small", **settings))
    assert [row["model"] for row in rows] == [name for name in names for _ in range(2)]
    assert all(row["causal"] for row in rows)
    slots = [row["cache_bytes_per_token"] for row in rows]
    assert min(slots[:2]) > 0 and slots[2:] == [0, 0]


def translator(config):
    model = randomize(build_encoder_decoder(config, 40))
    return model, decode.cached_step


def language_model(config):
    model = randomize(build_language_model(config, 40))
    return model, decode.continuing_step


@pytest.mark.parametrize(
    "make, config",
    [
        pytest.param(translator, SMALL, marks=pytest.mark.long),
        (translator, TRANSFORMER),
        (language_model, CAUSAL_CONFIGS["transformer-delta"]),
    ],
    ids=["transevolve", "transformer", "language model"],
)
def test_recomputing_finds_what_the_cache_finds(make, config):
    model, step = make(config)
    sources = tokens(batch=2, length=6)

    @tf.function
    def search(step, cache):
        return beam_search(
            step(model, sources), cache(2, 3), ops.array([20, 20]), 20, 3
        )

    found = [
        search(step, model.empty_cache),
        search(decode.recomputing_step, SlotMap.empty),
    ]
    np.testing.assert_array_equal(found[0].tokens, found[1].tokens)
    np.testing.assert_allclose(found[0].scores, found[1].scores, rtol=1e-4)
