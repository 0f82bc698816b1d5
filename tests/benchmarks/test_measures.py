"""What the benchmarks yield, on models and lengths that take seconds."""

import os
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from benchmarks import (
    alone,
    calls,
    decoding,
    features,
    floor,
    memory,
    models,
    parameters,
    profile,
    pytorch,
    rows,
    serving,
    speed,
    timing,
)
from benchmarks.calls import Setting
from common.errors import UserError
from decoding.beam_search import beam_search
from models import build_encoder_decoder, variant_config, variants
from tests import forked
from tests.models.builders import (
    SMALL,
    TRANSFORMER,
    draw_no_rotations,
    randomize,
    tokens,
)
from tests.shallow import LAYERS, shallow, shallow_variant

pytestmark = pytest.mark.slow

memory_peak = memory._peak
PAIR = ["transformer", "transevolve-fullff-1"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few layers, a small product for the peak; `speed` sets the dtype policy of the
    process."""
    monkeypatch.setattr(models, "variant_config", shallow_variant)
    monkeypatch.setattr(speed, "PEAK_SIZE", 256)
    yield
    keras.config.set_dtype_policy("float32")


def test_calls_take_turns_and_the_first_round_does_not_count():
    made = []
    each = {name: lambda name=name: made.append(name) for name in "abc"}
    seconds = timing.interleave(each, rounds=2)
    assert "".join(made) == "abcbcacab"
    assert [len(times) for times in seconds.values()] == [2, 2, 2]


def test_speedup_pairs_the_rounds():
    seconds = {"base": [1.0, 10.0, 4.0], "other": [0.5, 2.0, 4.0]}
    assert timing.speedup(seconds, "other", "base") == 2.0


def test_speed_rows():
    names = [*PAIR, PAIR[1] + "-literal"]
    found = list(speed.measure(names, [16], tokens_per_batch=50, rounds=1))
    assert [row["model"] for row in found] == names
    for row in found:
        assert row["batch"] == 3
        assert row["seconds"] > 0 and row["spread"] >= 0
        rate = row["gflop"] / row["seconds"]
        assert row["gflops_per_second"] == pytest.approx(rate, rel=0.05)
        share = row["gflops_per_second"] / row["peak_gflops_per_second"]
        assert row["peak_share"] == pytest.approx(share, rel=0.05)
        assert ("ratio_to_literal" in row) == (row["model"] == PAIR[1])
    assert found[0]["ratio_to_transformer"] == 1.0


def test_three_lengths_give_a_fit():
    arguments = {"mode": "inference", "tokens_per_batch": 400, "rounds": 1}
    found = list(speed.measure(PAIR, [8, 16, 24], **arguments))
    assert [row["batch"] for row in found[:6:2]] == [50, 25, 16]
    assert [row["model"] for row in found[6:]] == PAIR
    assert {row["benchmark"] for row in found[6:]} == {"speed_fit"}


def test_the_fit_finds_a_line():
    same = dict.fromkeys(("model", *Setting().row()))
    lengths = (1000, 2000, 4000)
    points = [
        {**same, "length": n, "batch": 2, "seconds": 2 * n * (3e-6 + 5e-9 * n)}
        for n in lengths
    ]
    fit = speed._fit(points)
    assert fit["microseconds_per_token"] == pytest.approx(3)
    assert fit["nanoseconds_per_token_and_length"] == pytest.approx(5)
    assert fit["largest_error"] == 0


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode", ["train", "inference"])
def test_every_mode_and_precision_runs(mode, precision):
    name = "transevolve-randomff-1"
    arguments = {"precision": precision, "mode": mode, "tokens_per_batch": 32}
    (row,) = speed.measure([name], [16], rounds=1, **arguments)
    assert (row["mode"], row["precision"], row["batch"]) == (mode, precision, 2)
    assert row["parameters"] == models.build(name, "small").count_params()


def test_translators_are_timed():
    (row,) = speed.measure(["transformer"], [8], 16, 1, task="translation")
    assert row["task"] == "translation" and row["seconds"] > 0 and "gflop" not in row
    with pytest.raises(UserError, match="--causal: expected --task=classification"):
        list(speed.measure(["transformer"], [8], task="translation", causal=True))


@pytest.mark.parametrize("task", ["classification", "translation"])
@pytest.mark.parametrize("mode", ["train", "inference"])
def test_pytorch_is_timed(task, mode):
    pytest.importorskip("torch")
    names = [models.PYTORCH, "transformer"]
    row, ours = speed.measure(names, [8], 16, 1, task=task, mode=mode)
    assert row["seconds"] > 0 and row["ratio_to_transformer"] > 0
    # PyTorch's attention has four biases.
    attentions = LAYERS if task == "classification" else 3 * LAYERS
    assert row["parameters"] == ours["parameters"] + attentions * 4 * 256


@pytest.mark.parametrize("task", ["classification", "translation"])
def test_pytorch_drops_the_outputs_of_sublayers_alone(task):
    torch = pytest.importorskip("torch")
    sizes = dict.fromkeys(("vocabulary_size", "num_classes", "num_subwords"), 8)
    config = {**models.model_config(models.PYTORCH, "small"), **sizes, "task": task}
    model, *_ = pytorch._model(config, 1, 4)
    # Of a layer's outputs: an encoder's has two sublayers, and a decoder's three.
    outputs = {"dropout1", "dropout2"}
    if task == "translation":
        outputs.add("dropout3")
    dropping, attentions = set(), set()
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout) and module.p:
            dropping.add(name.rpartition(".")[-1])
        if isinstance(module, torch.nn.MultiheadAttention):
            attentions.add(module.dropout)
    assert dropping == outputs and attentions == {0}


def test_xla_runs():
    (row,) = speed.measure(
        PAIR[1:], [16], tokens_per_batch=16, rounds=1, jit_compile=True
    )
    assert row["xla"]


def test_causal_models_are_timed_beside_the_floor():
    names = [PAIR[1] + form for form in ("-linear", "-none")]
    linear, floor = speed.measure(names, [16], 16, 1, causal=True)
    assert linear["causal"] and floor["causal"]
    ratio = floor["seconds"] / linear["seconds"]
    assert linear["ratio_to_floor"] == pytest.approx(ratio, rel=0.02)
    assert "ratio_to_floor" not in floor
    model = models.build(names[0], "small", causal=True)
    assert model.encoder.blocks[0].attention.causal
    with pytest.raises(UserError, match="--models: .*'keras-hub'"):
        list(speed.measure([models.KERAS_HUB], [16], causal=True))


def test_what_there_is_no_memory_for_is_not_timed(monkeypatch):
    short, long = (
        calls.prepare(PAIR[1], Setting(), 1, length).bytes for length in (16, 160)
    )
    assert long > short

    def shortage(wanted, strategy, certain):
        return "too much" if wanted > (short + long) / 2 else None

    monkeypatch.setattr(speed, "shortage", shortage)
    found = list(speed.measure(PAIR[1:], [160, 16], 16, 1))
    assert [row.get("not_run") for row in found] == ["too much", None]
    assert "seconds" not in found[0] and found[1]["seconds"] > 0


def out_of_memory():
    raise tf.errors.ResourceExhaustedError(None, None, "OOM")


def dead():
    raise alone.ProcessEnded("a peer: its process was ended")


def dead_later(made=[]):  # noqa: B006
    made.append("a call")
    if len(made) > 2:
        dead()


@pytest.mark.parametrize(
    "call, reason",
    [
        (out_of_memory, "memory ran out"),
        (dead, "a peer: its process was ended"),
        (dead_later, "a peer: its process was ended"),
    ],
)
def test_a_call_without_memory_costs_no_other_row(call, reason, monkeypatch):
    prepare = calls.prepare

    def prepared(name, *arguments):
        found = prepare(name, *arguments)
        return found._replace(call=call) if name == "transformer" else found

    monkeypatch.setattr(speed, "prepare", prepared)
    lost, kept = speed.measure(PAIR, [16], 16, 1)
    assert reason in lost["not_run"] and kept["seconds"] > 0


def test_a_peer_that_cannot_start_costs_no_other_row(monkeypatch):
    prepare = calls.prepare

    def prepared(name, *arguments):
        return dead() if name == "transformer" else prepare(name, *arguments)

    monkeypatch.setattr(speed, "prepare", prepared)
    lost, kept = speed.measure(PAIR, [16], 16, 1)
    assert "a peer: its process" in lost["not_run"] and kept["seconds"] > 0


def test_nothing_measured_is_no_picture(tmp_path):
    with pytest.raises(UserError, match="--plot=.*expected rows"):
        rows.plot([{"benchmark": "speed", "not_run": "x"}], tmp_path / "speed.png")


def test_floor_rows():
    *products, total = floor.measure(PAIR[1:], [16], tokens_per_batch=32, rounds=1)
    assert {row["benchmark"] for row in products} == {"floor"}
    seconds = sum(row["seconds"] for row in products)
    assert total["products_seconds"] == pytest.approx(seconds, abs=0.01)
    assert total["seconds"] > 0


def test_profile_rows():
    rows = list(profile.measure(["transevolve-fullff-1-linear"], [16], 32))
    assert {row["part"] for row in rows} == set(profile.PARTS)
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=0.01)
    products = next(row for row in rows if row["part"] == "matrix products")
    assert products["operations"] >= 15 and products["busy_seconds"] > 0


def shallow_peak(*arguments):
    models.variant_config = shallow_variant
    return memory_peak(*arguments)


def peak_of(call, monkeypatch):
    """A row's figures for a call that is predicted to take 70 bytes."""
    prepared = calls.Prepared(call, bytes=70, parameters=0, products=[])
    monkeypatch.setattr(memory, "prepare", lambda *_: prepared)
    return memory_peak("transformer", Setting(), 1, 16)


def test_what_is_predicted_not_to_fit_is_not_called(monkeypatch):
    monkeypatch.setattr(memory, "shortage", lambda wanted, *_, **__: f"{wanted} bytes")
    found = peak_of(lambda: pytest.fail("was called"), monkeypatch)
    assert found == {"not_run": "70 bytes"}


def test_what_runs_out_of_memory_has_no_peak(monkeypatch):
    assert peak_of(out_of_memory, monkeypatch) == {"not_run": "memory ran out"}


def peak_or_exit(name, setting, batch_size, length):
    if length == 24:
        raise SystemExit(3)
    return {"peak_memory_mb": 100}


def test_what_ended_a_process_is_said(monkeypatch):
    monkeypatch.setattr(memory, "_peak", peak_or_exit)
    monkeypatch.setattr(alone.multiprocessing, "get_context", lambda _: forked.CONTEXT)
    lost, kept = memory.measure(PAIR[1:], [24, 8])
    expected = f"memory: {PAIR[1]} at 24 tokens: its process ended with code 3"
    assert lost["not_run"] == expected and kept["peak_memory_mb"] == 100


def fail(words):
    raise UserError(words)


def test_what_a_process_raises_is_raised_here(monkeypatch):
    monkeypatch.setattr(alone.multiprocessing, "get_context", lambda _: forked.CONTEXT)
    with pytest.raises(UserError, match="^a mistake"):
        alone.run_alone("a call", fail, "a mistake")


def peak_or_death(name, setting, batch_size, length):
    if length == 24:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"peak_memory_mb": 100 + 2 * length}


def test_memory_goes_on_after_a_death(monkeypatch):
    monkeypatch.setattr(memory, "_peak", peak_or_death)
    monkeypatch.setattr(alone.multiprocessing, "get_context", lambda _: forked.CONTEXT)
    lengths = [8, 16, 24, 32, 64]
    *rows, fit = memory.measure(PAIR[1:], lengths, tokens_per_batch=16)
    assert [row.get("peak_memory_mb") for row in rows] == [116, 132, None, 164, 228]
    assert "was ended by SIGKILL, as happens when memory" in rows[2]["not_run"]
    # Of one sequence a batch, as the first row is not.
    assert fit["benchmark"] == "memory_fit" and fit["megabytes"] == 100
    assert fit["kilobytes_per_token"] == 2000 and fit["largest_error"] == 0


def test_memory_grows_with_the_length(monkeypatch):
    monkeypatch.setattr(memory, "_peak", shallow_peak)
    # A new process imports TensorFlow anew; test_scripts.py has one.
    monkeypatch.setattr(alone.multiprocessing, "get_context", lambda _: forked.CONTEXT)
    short, long = memory.measure(PAIR[:1], [16, 2000], tokens_per_batch=2000)
    (causal,) = memory.measure(PAIR[1:], [16], causal=True)
    assert causal["causal"] and causal["peak_memory_mb"] > 0
    assert short["memory_ratio_to_transformer"] == 1
    assert long["memory_ratio_to_transformer"] == 1
    # Every layer keeps at least A, 8 heads of 2000 x 2000.
    square = 8 * 2000**2 * 4 / 2**20
    assert long["peak_memory_mb"] - short["peak_memory_mb"] > (LAYERS - 0.5) * square


def test_random_features_come_near_softmax_attention(monkeypatch, tmp_path):
    """Their error falls as 1 / sqrt(m), and is smaller with orthogonal vectors."""
    monkeypatch.setattr(features, "NUM_FEATURES", (64, 256, 1024, 4096))
    found = list(features.measure())
    errors = {}
    for row in found:
        errors.setdefault(row["vectors"], {})[row["num_features"]] = row["error"]
    for line in errors.values():
        counts, means = np.log(list(line)), np.log(list(line.values()))
        assert np.polyfit(counts, means, 1)[0] == pytest.approx(-0.5, abs=0.05)
    for count, error in errors["independent"].items():
        assert errors["orthogonal"][count] < error
    rows.plot(found, tmp_path / "features.png")
    assert (tmp_path / "features.png").read_bytes().startswith(b"\x89PNG")


# Table 2, as the authors' code counts; for randomFF without its unused values.
TRANSLATION = {
    "transevolve-randomff-1": 27_497_472 - 12 * 1_536,
    "transevolve-randomff-2": 33_790_976 - 12 * 1_536,
    "transevolve-fullff-1": 52_632_576,
    "transevolve-fullff-2": 58_926_080,
}


def test_parameters(monkeypatch):
    real = models.model_config
    monkeypatch.setattr(models, "variant_config", variant_config)
    # The paper's numbers are of translation.
    monkeypatch.setattr(
        parameters,
        "model_config",
        lambda name, size: (
            real(name, size) if size == "base" else shallow(real(name, size))
        ),
    )
    draw_no_rotations(monkeypatch)
    found = list(parameters.measure())
    assert {(row["task"], row["model"]) for row in found} >= {
        (task, name)
        for task in ("wmt14", *parameters.CLASSIFICATION)
        for name in variants(in_paper=True)
    }
    for row in found:
        if row["task"] == "wmt14" and row["model"] in TRANSLATION:
            assert row["parameters_literal"] == TRANSLATION[row["model"]]
            assert row["parameters_literal"] // 1e6 in (
                row["published"],
                row["published"] - 1,
            )
        else:
            has_literal_form = row["model"] + models.LITERAL in variants()
            assert ("parameters_literal" in row) == has_literal_form


@pytest.mark.parametrize("name", ["bert", *models.PEERS])
def test_models_that_cannot_be_had_are_named(name, monkeypatch):
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=f"--models: .*{name}"):
        list(speed.measure([name], [16]))


def test_markdown_says_once_what_all_rows_share():
    text = rows.markdown(
        [
            {"benchmark": "speed", "size": "small", "model": "a", "seconds": 1.5},
            {"benchmark": "speed", "size": "small", "model": "b", "parameters": 12345},
        ]
    )
    assert text == (
        "benchmark speed, size small\n\n"
        "| model | seconds | parameters |\n| --- | --: | --: |\n"
        "| a | 1.5 |  |\n| b |  | 12,345 |"
    )


def test_decode_rows(monkeypatch):
    monkeypatch.setattr(decoding, "VOCABULARY_SIZE", 50)
    names = ["transformer", "transevolve-randomff-1"]
    rows = list(decoding.measure(names, [3, 20], "small", 2, 2, 5, rounds=2))
    expected = [(name, length) for name in names for length in (3, 20)]
    assert [(row["model"], row["length"]) for row in rows] == expected
    for row in rows:
        assert row["ratio_to_recomputing"] > 0 and row["ratio_to_transformer"] > 0
        speed = 2 * row["length"] / row["seconds"]
        assert row["tokens_per_second"] == pytest.approx(speed, rel=0.1)
    assert [row["growth_of_step"] for row in rows if row["length"] == 3] == [1, 1]
    # float32: keys and values of each layer; K, b^l and values of one block.
    assert rows[0]["cache_bytes_per_token"] == 4 * LAYERS * 2 * 256
    assert rows[2]["cache_bytes_per_token"] == 4 * (2 * 256 + LAYERS * (8 + 256))


def test_steps_are_those_since_the_length_before():
    seconds = {("m", 0): [1.0, 2.0], ("m", 10): [2.0, 4.0], ("m", 30): [8.0, 8.0]}
    steps = decoding._milliseconds_per_step(seconds, "m", [10, 30])
    assert steps == {10: [100.0, 200.0], 30: [300.0, 200.0]}


@pytest.mark.parametrize(
    "task, names, lengths",
    [("classification", PAIR[:1], [8, 40]), ("translation", PAIR[1:], [8])],
    ids=["classification", "translation"],
)
def test_served_models(task, names, lengths, monkeypatch):
    monkeypatch.setattr(models, "NUM_SUBWORDS", 400)
    found = list(serving.measure(names, lengths, task=task, batch_size=3, rounds=2))
    assert [row["model"] for row in found] == names * len(lengths)
    for row in found:
        assert row["p99_ms"] >= row["p50_ms"] > 0 and row["load_seconds"] > 0
        assert row["texts_per_second"] > 0 and row["disk_mb"] > 0
        assert row["time_to_evaluation"] > 0 and row["latency_to_predict"] > 0
    ratio = 1.0 if names == ["transformer"] else None
    assert {row.get("latency_to_transformer") for row in found} == {ratio}


def test_decode_wants_rising_lengths():
    with pytest.raises(UserError, match="--lengths.*rising.*64, 16"):
        list(decoding.measure(["transformer"], [64, 16]))


@pytest.mark.parametrize(
    "config", [SMALL, TRANSFORMER], ids=lambda c: c["architecture"]
)
def test_recomputing_finds_what_the_cache_finds(config):
    model = randomize(build_encoder_decoder(config, 40))
    sources = tokens(batch=2, length=6)

    @tf.function
    def search(step, cache):
        return beam_search(
            step(model, sources), cache(2, 3), ops.array([20, 20]), 20, 3
        )

    found = [
        search(decoding.cached_step, model.empty_cache),
        search(decoding.recomputing_step, decoding.Prefixes.empty),
    ]
    np.testing.assert_array_equal(found[0].tokens, found[1].tokens)
    np.testing.assert_allclose(found[0].scores, found[1].scores, rtol=1e-4)
