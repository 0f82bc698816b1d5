"""What the benchmarks yield, on models and lengths that take seconds."""

from dataclasses import replace

import keras
import pytest
import tensorflow as tf

from benchmarks import (
    alone,
    calls,
    memory,
    models,
    params,
    products,
    pytorch,
    rows,
    speed,
    timing,
)
from benchmarks.calls import Setting
from benchmarks.traced_products import Product
from common.errors import UserError
from configs.published import SPEED
from models import build_encoder_decoder, variant_config, variants
from tests import forked
from tests.benchmarks.turns import PAIR, TWO_SECONDS, WIDTH, made_up
from tests.models.builders import (
    draw_no_rotations,
)
from tests.shallow import LAYERS, shallow, shallow_variant

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]


# Of 480 operations each time, of 144 and of 640.
PRODUCTS = (
    Product(((2, 6, 4), (2, 5, 4)), (False, True), count=1_000_000),
    Product(((6, 3), (6, 4)), (True, False), count=2_000_000),
    Product(((2, 4, 8), (8, 5)), equation="abc,cd->bad", count=3_000_000),
)
GFLOP = 0.48 + 0.288 + 1.92


def two_seconds(monkeypatch, module, **others):
    """Each call of a module takes `TWO_SECONDS`; of others, by their names, others."""
    made_up(monkeypatch, module, lambda name: others.get(name, TWO_SECONDS))


def prepared_at_once(monkeypatch, module):
    """Lets a module prepare models whose calls do nothing."""

    def prepare(name, setting, batch_size, length):
        model = models.build(name, setting.size, setting.causal)
        return calls.Prepared(lambda: None, 0, model.count_params(), PRODUCTS)

    monkeypatch.setattr(module, "prepare", prepare)


def test_calls_take_turns_and_the_first_round_does_not_count(monkeypatch):
    made, now = [], [0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    def call(name):
        made.append(name)
        now[0] += "abc".index(name) + len(made)

    each = {name: lambda name=name: call(name) for name in "abc"}
    seconds = timing.interleave(each, rounds=2)
    assert "".join(made) == "abcbcacab"
    # Each its number and that of the call, without the first three.
    assert seconds == {"a": [0 + 6, 0 + 8], "b": [1 + 4, 1 + 9], "c": [2 + 5, 2 + 7]}


def test_speedup_pairs_the_rounds():
    seconds = {"base": [1.0, 10.0, 4.0], "other": [0.5, 2.0, 4.0]}
    assert timing.speedup(seconds, "other", "base") == 2.0


def test_rows_of_speed_compare_with_the_first_model(monkeypatch):
    literal, bound = PAIR[1] + "-literal", PAIR[1] + "-none"
    names = [*PAIR, literal, bound]
    slower = {"transformer": [3.0, 8.0, 8.0], literal: [4.0, 6.0, 16.0]}
    two_seconds(monkeypatch, speed, **slower, **{speed.PEAK: [0.5]})
    prepared_at_once(monkeypatch, speed)
    found = list(speed.measure(names, [1000], 2000))
    assert [row["model"] for row in found] == names
    evolving = found[1]
    assert (evolving["batch"], evolving["length"]) == (2, 1000)
    assert (evolving["seconds"], evolving["spread"]) == (2.0, 3.0)
    assert evolving["ratio_to_transformer"] == 3.0
    assert evolving["ratio_to_literal"] == 4.0
    assert evolving["ratio_to_lower_bound"] == 1.0
    assert evolving["published"] == SPEED[PAIR[1]][1000]
    model = models.build(PAIR[1], "small")
    assert evolving["parameters"] == model.count_params()
    assert evolving["gflop"] == pytest.approx(GFLOP, abs=0.006)
    assert evolving["gflops_per_second"] == pytest.approx(GFLOP / 2, abs=0.06)
    peak = 2 * 256**3 / 0.5 / 1e9
    assert evolving["peak_gflops_per_second"] == pytest.approx(peak, abs=0.06)
    assert evolving["peak_share"] == pytest.approx(GFLOP / 2 / peak, abs=0.001)
    ratios = [{name for name in row if name.startswith("ratio")} for row in found]
    assert ratios[0] == {"ratio_to_transformer"}
    assert ratios[2] == {"ratio_to_transformer", "ratio_to_lower_bound"}
    assert ratios[3] == {"ratio_to_transformer", "ratio_to_literal"}


def test_three_lengths_give_a_fit(monkeypatch):
    two_seconds(monkeypatch, speed)
    prepared_at_once(monkeypatch, speed)
    found = list(speed.measure(PAIR, [8, 16, 24], tokens_per_batch=400))
    assert [row["batch"] for row in found[:6:2]] == [50, 25, 16]
    assert [row["model"] for row in found[6:]] == PAIR
    assert {row["benchmark"] for row in found[6:]} == {"speed_fit"}


def test_the_fit_finds_a_line():
    fields = dict.fromkeys(("model", *Setting._fields))
    lengths = (1000, 2000, 4000)
    points = [
        {**fields, "length": n, "batch": 2, "seconds": 2 * n * (3e-6 + 5e-9 * n)}
        for n in lengths
    ]
    fit = speed._fit(points)
    assert fit["microseconds_per_token"] == pytest.approx(3)
    assert fit["nanoseconds_per_token_and_length"] == pytest.approx(5)
    assert fit["largest_error"] == 0


@pytest.mark.parametrize(
    "mode, precision",
    [
        ("train", "bfloat16"),
        ("inference", "float32"),
        pytest.param("train", "float32", marks=pytest.mark.long),
        pytest.param("inference", "bfloat16", marks=pytest.mark.long),
    ],
)
def test_every_mode_and_precision_runs(mode, precision, monkeypatch):
    name = "transevolve-randomff-1"
    dtypes = []
    two_seconds(monkeypatch, speed)
    monkeypatch.setattr(
        speed,
        "_large_product",
        lambda precision: lambda: dtypes.append(keras.config.dtype_policy().name),
    )
    arguments = {"precision": precision, "mode": mode, "tokens_per_batch": 32}
    (row,) = speed.measure([name], [16], **arguments)
    assert (row["mode"], row["precision"], row["batch"]) == (mode, precision, 2)
    assert row["parameters"] == models.build(name, "small").count_params()
    expected = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[precision]
    assert dtypes == [expected]


def test_translators_are_timed(monkeypatch):
    two_seconds(monkeypatch, speed)
    (row,) = speed.measure(["transformer"], [8], 16, task="translation")
    assert row["task"] == "translation" and row["seconds"] == 2.0
    assert "gflop" in row
    config = models.model_config("transformer", "small")
    model = build_encoder_decoder(config, models.NUM_SUBWORDS)
    assert row["parameters"] == model.count_params()
    with pytest.raises(UserError, match="--causal: expected --task=classification"):
        list(speed.measure(["transformer"], [8], task="translation", causal=True))


@pytest.mark.parametrize(
    "mode, task",
    [
        ("inference", "translation"),
        pytest.param("train", "classification", marks=pytest.mark.long),
        pytest.param("train", "translation", marks=pytest.mark.long),
        pytest.param("inference", "classification", marks=pytest.mark.long),
    ],
)
def test_pytorch_is_timed(task, mode):
    pytest.importorskip("torch")
    names = [models.PYTORCH, "transformer"]
    row, ours = speed.measure(names, [8], 16, 1, task=task, mode=mode)
    ratio = ours["seconds"] / row["seconds"]
    # Rounded to three digits after the point.
    assert row["ratio_to_transformer"] == pytest.approx(ratio, rel=0.02, abs=0.001)
    # PyTorch's attention has four biases.
    attentions = LAYERS if task == "classification" else 3 * LAYERS
    assert row["parameters"] == ours["parameters"] + attentions * 4 * WIDTH


@pytest.mark.parametrize("task", ["classification", "translation"])
def test_pytorch_drops_the_outputs_of_sublayers_alone(task):
    torch = pytest.importorskip("torch")
    sizes = dict.fromkeys(("vocabulary_size", "num_classes", "num_subwords"), 8)
    config = {**models.model_config(models.PYTORCH, "small"), **sizes, "task": task}
    model, *_ = pytorch.make_model(config, 1, 4)
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


def test_xla_compiles_an_update(monkeypatch):
    flags = []
    monkeypatch.setattr(calls, "one_device_trainer", lambda *x: flags.append(x[-1]))
    calls.make_trainer(PAIR[1], Setting(xla=True), 1, 16)
    assert flags == [True]


def test_xla_compiles_a_forward_pass(monkeypatch):
    flags, function = [], tf.function

    def spied(*arguments, jit_compile=None, **options):
        flags.append(jit_compile)
        return function(*arguments, jit_compile=jit_compile, **options)

    monkeypatch.setattr(calls.tf, "function", spied)
    model = calls.prepare(PAIR[1], Setting(xla=True, mode="inference"), 1, 16)
    model.attempt()
    assert model.not_run is None and True in flags


def test_causal_models_are_timed_beside_the_lower_bound(monkeypatch):
    names = [PAIR[1] + form for form in ("-linear", "-none")]
    two_seconds(monkeypatch, speed, **{names[1]: [0.5, 1.0, 2.0]})
    linear, bound = speed.measure(names, [16], 16, causal=True, mode="inference")
    assert linear["causal"] and bound["causal"]
    assert linear["ratio_to_lower_bound"] == 0.5
    assert "ratio_to_lower_bound" not in bound
    model = models.build(names[0], "small", causal=True)
    assert model.encoder.layers[0].attention.causal
    with pytest.raises(UserError, match="--causal: pytorch has no other"):
        list(speed.measure([models.PYTORCH], [16], causal=True))


def test_what_there_is_no_memory_for_is_not_timed(monkeypatch):
    sizes = []

    def shortage(num_bytes, strategy, certain):
        sizes.append(num_bytes)
        return "too much" if num_bytes == max(sizes) else None

    two_seconds(monkeypatch, speed)
    monkeypatch.setattr(calls, "shortage", shortage)
    found = list(speed.measure(PAIR[1:], [160, 16], 16, mode="inference"))
    # The longer one needs more.
    assert [row.get("not_run") for row in found] == ["too much", None]
    assert [row.get("seconds") for row in found] == [None, 2.0]


def out_of_memory():
    raise tf.errors.ResourceExhaustedError(None, None, "OOM")


def dead():
    raise alone.ProcessEnded("another: its process was ended")


def dead_later(made=[]):  # noqa: B006
    made.append("a call")
    if len(made) > 1:
        dead()


def changed(monkeypatch, module, **changes):
    """Lets a module prepare a Transformer, but with changes."""
    prepare = calls.prepare

    def prepared(name, *arguments):
        model = prepare(name, *arguments)
        return replace(model, **changes) if name == "transformer" else model

    monkeypatch.setattr(module, "prepare", prepared)


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"call": out_of_memory}, "memory ran out"),
        ({"call": dead}, "another: its process was ended"),
        ({"call": dead_later}, "another: its process was ended"),
        ({"call": None, "not_run": "it did not start"}, "it did not start"),
    ],
    ids=["memory", "dead", "dead later", "not started"],
)
def test_a_model_that_fails_costs_no_other_row(changes, reason, monkeypatch):
    closed = []
    two_seconds(monkeypatch, speed)
    close = {"close": lambda: closed.append("transformer")}
    changed(monkeypatch, speed, **changes, **close)
    lost, measured = speed.measure(PAIR, [16], 16, mode="inference")
    assert lost["not_run"] == reason and "seconds" not in lost
    assert measured["seconds"] == 2.0 and "ratio_to_transformer" not in measured
    assert closed


def test_nothing_measured_is_no_picture(tmp_path):
    with pytest.raises(UserError, match="--plot=.*expected rows"):
        rows.plot([{"benchmark": "speed", "not_run": "x"}], tmp_path / "speed.png")


def test_rows_of_products_add_up_to_the_floor(monkeypatch):
    two_seconds(monkeypatch, products, **{products.STEP: [900.0]})
    prepared_at_once(monkeypatch, products)
    *each, total = products.measure(PAIR[1:], [16], tokens_per_batch=32)
    assert {row["benchmark"] for row in each} == {"products"}
    assert [(row["product"], row["count"], row["seconds"]) for row in each] == [
        (product.name, product.count, 2.0 * product.count) for product in PRODUCTS
    ]
    assert total["benchmark"] == "products_total" and total["seconds"] == 900
    assert total["gflop"] == round(GFLOP, 1)
    taken = 2.0 * 6_000_000
    assert total["products_seconds"] == taken
    assert total["products_share"] == pytest.approx(taken / 900, abs=0.001)


@pytest.mark.parametrize("task", ["classification", "translation"])
def test_products_are_of_the_mode(task):
    update, forward = (
        calls.prepare("transformer", Setting(mode=mode, task=task), 2, 16).products
        for mode in ("train", "inference")
    )
    update, forward = (sum(x.operations for x in each) for each in (update, forward))
    assert update == pytest.approx(3 * forward, rel=0.02)


def test_products_of_what_cannot_be_called_are_not_timed(monkeypatch):
    changed(monkeypatch, products, call=out_of_memory)
    (row,) = products.measure(PAIR[:1], [16], tokens_per_batch=16)
    assert row["not_run"] == "memory ran out" and row["model"] == PAIR[0]


def shallow_peak(*arguments):
    """What `memory.peak` says, in a process that `quick` has not changed."""
    models.variant_config = shallow_variant
    return memory.peak(*arguments)


def in_a_fork(title, function, *arguments):
    """As `run_alone`, which imports TensorFlow anew; test_scripts.py has that."""
    return forked.call(shallow_peak, *arguments)


def test_memory_grows_with_the_length(monkeypatch):
    monkeypatch.setattr(memory, "run_alone", in_a_fork)
    short, long = memory.measure(
        PAIR[:1], [16, 1500], tokens_per_batch=1500, mode="inference"
    )
    # A layer makes A and its softmax, 8 heads of 1500 x 1500 each.
    square = 8 * 1500**2 * 4 / 2**20
    assert long["peak_memory_mb"] - short["peak_memory_mb"] > 0.5 * square
    assert long["predicted_memory_mb"] - short["predicted_memory_mb"] > 0.5 * square


def measured_memory(monkeypatch, peak, *arguments, **setting):
    """Rows of memory whose figures `peak` gives, or why it cannot."""
    monkeypatch.setattr(memory, "run_alone", lambda title, _, *given: peak(*given))
    return list(memory.measure(*arguments, **setting))


def test_memory_is_set_against_what_was_measured_before(monkeypatch):
    names = ["transevolve-fullff-1-none", *PAIR]
    peaks = {"transformer": 150, "transevolve-fullff-1": 300}
    asked = []

    def peak(name, setting, batch_size, length):
        asked.append((name, setting["causal"], batch_size, length))
        return {"peak_memory_mb": peaks.get(name, 100)}

    found = measured_memory(monkeypatch, peak, names, [16], 32, causal=True)
    assert asked == [(name, True, 2, 16) for name in names]
    ratios = [
        {name: row[name] for name in row if name.startswith("memory_")} for row in found
    ]
    assert ratios[:2] == [{}, {"memory_ratio_to_transformer": 1.0}]
    assert ratios[2] == {
        "memory_ratio_to_transformer": 2.0,
        "memory_ratio_to_lower_bound": 3.0,
    }


def test_memory_goes_on_after_a_death(monkeypatch):
    def peak(name, setting, batch_size, length):
        return dead() if length == 24 else {"peak_memory_mb": 100 + 2 * length}

    lengths = [8, 16, 24, 32, 64]
    *found, fit = measured_memory(monkeypatch, peak, PAIR[1:], lengths, 16)
    assert [row.get("peak_memory_mb") for row in found] == [116, 132, None, 164, 228]
    assert found[2]["not_run"] == "another: its process was ended"
    # Of one sequence a batch, as the first row is not.
    assert fit["benchmark"] == "memory_fit" and fit["megabytes"] == 100
    assert fit["kilobytes_per_token"] == 2000 and fit["largest_error"] == 0


def peak_of(prepared, monkeypatch):
    monkeypatch.setattr(memory, "prepare", lambda *_: prepared)
    return memory.peak("transformer", {}, 1, 16)


def test_what_cannot_be_called_has_no_peak(monkeypatch):
    short, full = calls.Prepared(not_run="short"), calls.Prepared(out_of_memory)
    assert peak_of(short, monkeypatch) == {"not_run": "short"}
    assert peak_of(full, monkeypatch) == {"not_run": "memory ran out"}


def test_a_peak_is_of_two_calls(monkeypatch):
    held, made = [2**20], []

    def call():
        made.append("a call")
        held[0] += 5 * 2**20

    monkeypatch.setattr(memory, "peak_bytes", lambda: held[0])
    found = peak_of(calls.Prepared(call, bytes=7 * 2**20), monkeypatch)
    assert found == {"peak_memory_mb": 11, "predicted_memory_mb": 8}


# Table 2, as the authors' code counts; for randomFF without its unused values.
TRANSLATION = {
    "transevolve-randomff-1": 27_497_472 - 12 * 1_536,
    "transevolve-randomff-2": 33_790_976 - 12 * 1_536,
    "transevolve-fullff-1": 52_632_576,
    "transevolve-fullff-2": 58_926_080,
}


def test_translators_have_the_parameters_that_the_paper_counts(monkeypatch):
    real = models.model_config
    monkeypatch.setattr(models, "variant_config", variant_config)
    chosen = [
        name
        for name in variants()
        if name.removesuffix(models.LITERAL) in variants(in_paper=True)
    ]
    chosen.append("transevolve-fullff-1-linear")  # all the others take long
    monkeypatch.setattr(params, "variants", lambda: chosen)
    # The paper's numbers are of translation.
    monkeypatch.setattr(
        params,
        "model_config",
        lambda name, size: (
            real(name, size) if size == "base" else shallow(real(name, size))
        ),
    )
    draw_no_rotations(monkeypatch)
    found = list(params.measure())
    assert [(row["task"], row["model"]) for row in found] == [
        (task, name)
        for task in ("wmt14", *params.CLASSIFICATION)
        for name in chosen
        if not name.endswith(models.LITERAL)
    ]
    for row in found:
        if row["task"] == "wmt14" and row["model"] in TRANSLATION:
            assert row["parameters_literal"] == TRANSLATION[row["model"]]
            assert row["parameters_literal"] // 1e6 in (
                row["published"],
                row["published"] - 1,
            )
        else:
            has_literal_form = row["model"] + models.LITERAL in chosen
            assert ("parameters_literal" in row) == has_literal_form


@pytest.mark.parametrize("name", ["bert", models.PYTORCH])
def test_models_that_are_not_available_are_named(name, monkeypatch):
    monkeypatch.setattr(calls.importlib.util, "find_spec", lambda name: None)
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
