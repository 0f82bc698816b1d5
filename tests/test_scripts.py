"""The scripts as a user runs them: in a process of their own, on small data."""

import json

import keras
import numpy as np
import pytest

from common.errors import UserError
from data.tokenizers.symbols import SymbolTokenizer
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from models import build_classifier
from tests import classification
from tests.runs import untrained
from tests.scripts import (
    FLAGS,
    last_line,
    listops_config,
    metrics,
    script,
    train,
    train_arguments,
)
from training.init_from import take_weights
from training.train import train_and_evaluate

pytestmark = [pytest.mark.slow, pytest.mark.script]
SMALL_BENCHMARK = "tests/benchmarks/small.py"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def run(tmp_path_factory, cache):
    """A workdir of a finished run, and what train.py printed."""
    workdir = tmp_path_factory.mktemp("run")
    result = train(workdir, cache)
    assert result.returncode == 0, result.stderr
    return workdir, result


def test_train_leaves_a_whole_workdir(run):
    workdir, result = run
    assert json.loads(result.stdout)["step"] == 40
    assert "steps/s" in result.stderr
    assert "300 examples, 0 cut at 24 tokens, 0 bad rows skipped" in result.stderr
    rows = metrics(workdir)
    # 300 examples make 20 batches of two buckets: logged every 7 and at epoch ends.
    steps = [row["step"] for row in rows if row["split"] == "train"]
    assert steps == [7, 14, 20, 21, 28, 35, 40]
    validation = [row for row in rows if row["split"] == "validation"]
    assert [row["step"] for row in validation] == [20, 40]
    for name in (
        "config.json",
        "tokenizer/tokenizer.json",
        "tensorboard/train",
        "tensorboard/validation",
        "checkpoints/best",
        "checkpoints/last/20",
        "checkpoints/last/40/weights.index",
    ):
        assert (workdir / name).exists(), name


def test_evaluate_prints_one_json_line(run):
    workdir, _ = run
    result = script("evaluate.py", f"--workdir={workdir}")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["task"] == "listops" and found["split"] == "test"
    assert found["variant"] == "transevolve-randomff-1"
    assert found["examples"] == 70
    assert found["parameters"] > 0 and found["loss"] > 0
    assert found == json.loads((workdir / "results/test.json").read_text())
    assert "| class | examples | precision | recall | F1 |" in result.stderr
    assert "| 9 | " in result.stderr


def test_the_best_checkpoint_is_what_was_validated(run):
    workdir, _ = run
    result = script("evaluate.py", f"--workdir={workdir}", "--split=validation")
    found = json.loads(result.stdout)
    rows = [row for row in metrics(workdir) if row["split"] == "validation"]
    best = max(rows, key=lambda row: row["accuracy"])
    assert (found["accuracy"], found["loss"]) == (best["accuracy"], best["loss"])


def test_as_many_checkpoints_are_averaged_as_there_are(run):
    workdir, _ = run
    two = script("evaluate.py", f"--workdir={workdir}", "--average_checkpoints=2")
    assert json.loads(two.stdout)["examples"] == 70
    three = script("evaluate.py", f"--workdir={workdir}", "--average_checkpoints=3")
    assert three.returncode != 0
    assert three.stderr.strip().splitlines()[-1] == (
        "error: --average_checkpoints=3: expected as many checkpoints, found 2; train "
        "longer, with --config.train.keep_checkpoints of at least 3"
    )


def test_another_form_of_attention(run):
    workdir, _ = run
    linear = script("evaluate.py", f"--workdir={workdir}", "--attention=linear")
    assert linear.returncode == 0, linear.stderr
    found = json.loads(linear.stdout)
    assert found["variant"] == "transevolve-randomff-1-linear"
    assert found == json.loads((workdir / "results/test-linear.json").read_text())


def test_a_form_that_the_weights_do_not_fit(run):
    workdir, _ = run
    with pytest.raises(UserError, match="--attention=literal: expected a form with"):
        load_run(workdir, attention="literal")
    message = "--attention: expected one of .*, found softmax"
    with pytest.raises(UserError, match=message):
        load_run(workdir, attention="softmax")
    own = load_run(workdir, attention="factored")
    assert own.config.variant == "transevolve-randomff-1"


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(run, cache, tmp_path):
    """Started by the library, and gone on with by the script."""
    workdir, _ = run
    train_and_evaluate(listops_config(cache, **{"train.epochs": 1}), tmp_path)
    # Lines after the checkpoint, as a run leaves them that is killed in an epoch.
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 27, "split": "train", "loss": 0}\n')
    result = train(tmp_path, cache)
    assert "going on from step 20" in result.stderr
    expected = (workdir / "metrics.jsonl").read_bytes()
    assert (tmp_path / "metrics.jsonl").read_bytes() == expected


def test_a_finished_run_is_not_trained_again(run, cache):
    workdir, first = run
    before = (workdir / "metrics.jsonl").read_bytes()
    result = train(workdir, cache)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == json.loads(first.stdout)
    assert (workdir / "metrics.jsonl").read_bytes() == before


def test_a_workdir_of_another_run_is_left_alone(run, cache):
    workdir, _ = run
    before = (workdir / "config.json").read_bytes()
    message = last_line(train(workdir, cache, **{"seed": 1}))
    assert message.startswith(
        f"error: --workdir={workdir}: holds a run with config.seed=0"
    )
    assert (workdir / "config.json").read_bytes() == before


def test_a_workdir_that_cannot_be_one(tmp_path, cache):
    path = tmp_path / "file"
    path.touch()
    message = last_line(train(path, cache))
    assert message.startswith(f"error: --workdir={path}: expected a folder that can")


def test_stray_arguments_are_refused(tmp_path):
    message = last_line(script("evaluate.py", f"--workdir={tmp_path}", "split=test"))
    assert message == "error: split=test: expected a flag"


def test_a_start_that_failed_leaves_no_run(tmp_path, cache):
    wrong = {"data.source": "files", "data.dir": tmp_path / "nowhere"}
    workdir = tmp_path / "run"
    message = last_line(train(workdir, cache, **wrong))
    assert message.startswith(f"error: {tmp_path}/nowhere: expected a folder of basic_")
    right = {"train.steps": 2, "train.epochs": 15, "data.bucket_lengths": "(24,)"}
    arguments = train_arguments(workdir, cache, **right)
    result = script("train.py", *arguments)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["step"] == 2


def test_evaluating_nothing_is_refused(tmp_path):
    message = last_line(script("evaluate.py", f"--workdir={tmp_path / 'none'}"))
    assert message.endswith("none: expected a run of train.py, found none")
    message = last_line(script("evaluate.py", f"--workdir={tmp_path}", "--split=dev"))
    assert message == "error: --split: expected one of validation, test, found dev"


def test_a_classifier_answers_lines(run):
    workdir, _ = run
    expressions = "[MAX 1 2 ]\n[MIN 7 3 8 ]\n"
    result = script(
        "evaluate.py", f"--workdir={workdir}", "--interactive", input_text=expressions
    )
    assert result.returncode == 0, result.stderr
    answers = load_run(workdir).predict(expressions.splitlines())
    assert result.stdout.splitlines() == [answer.label for answer in answers]


def test_a_line_that_is_no_expression_loses_no_other_answer(run):
    workdir, _ = run
    lines = ["[SM 1 0 2 3 ]", "[SM 1 0", "( ( ( ( ( [SM 1 ) 0 ) 2 ) 3 ) ] )", "hello"]
    text = "".join(line + "\n" for line in lines)
    arguments = (f"--workdir={workdir}", "--interactive")
    result = script("evaluate.py", *arguments, input_text=text)
    error = "expected one balanced ListOps expression, found "
    first, not_closed, second, hello = result.stdout.splitlines()
    assert first == second and first.isdigit()
    assert not_closed == f"error: {error}1 operators that are not closed"
    assert hello == f"error: {error}the symbol 'hello'"
    assert f"line 2: {error}1 operators that are not closed" in result.stderr
    assert last_line(result) == "error: 2 of 4 lines have no answer, see above"
    answers = load_run(workdir).predict(lines)
    assert [str(answer) for answer in answers] == result.stdout.splitlines()
    assert [answer.label is None for answer in answers] == [False, True, False, True]


def test_raw_expressions_are_answered_as_evaluated(shared, tmp_path):
    """Of the benchmark's own file, with its parentheses."""
    changes = {"data.max_length": 500, "data.bucket_lengths": (500,)}
    config = listops_config(
        tmp_path,
        **changes,
        **{"data.source": "files", "data.dir": str(shared / "lra_listops")},
    )
    workdir = untrained(config, tmp_path / "run")
    result, _ = evaluate(workdir, "validation")
    lines = (shared / "lra_listops/basic_val.tsv").read_text().splitlines()[1:]
    sources, targets = zip(*(line.split("\t") for line in lines), strict=True)
    answers = load_run(workdir).predict(sources)
    right = [a.label == target for a, target in zip(answers, targets, strict=True)]
    assert np.mean(right) == result["accuracy"]
    scores = [a.scores[target] for a, target in zip(answers, targets, strict=True)]
    assert -np.log(scores).mean() == pytest.approx(result["loss"], abs=1e-5)
    # All have more than 500 symbols.
    assert all(answer.truncated for answer in answers)


def test_a_classifier_has_no_beams(run):
    with pytest.raises(UserError, match="--beam_size: expected a run that decodes"):
        load_run(run[0], decode={"beam_size": 2})
    result = script("evaluate.py", "--workdir=x", "--interactive", "--split=test")
    assert last_line(result) == "error: --split: --interactive does not take it"
    result = script("evaluate.py", f"--workdir={run[0]}", "--score", input_text="a\tb")
    message = "error: --score: expected a run whose answers have score, found listops"
    assert last_line(result) == message


def test_validation_data_is_what_was_not_trained_on(tmp_path, cache):
    """Or refused: it is cut from training data, whose order may have changed."""
    folder, moved = tmp_path / "ag_news_csv", tmp_path / "moved"
    folder.mkdir()
    classification.write_ag_news(folder)
    config = classification.settings("ag_news", tmp_path)
    config.data.update(source="files", dir=str(folder))
    train_and_evaluate(config, tmp_path / "run")
    folder.rename(moved)
    with pytest.raises(UserError) as error:
        evaluate(tmp_path / "run", "validation")
    assert str(error.value) == (
        f"{folder}: expected the folder ag_news_csv/, found no such file or folder; "
        "give its place by --config.data.dir, for a trained run by --data_dir"
    )
    result, _ = evaluate(tmp_path / "run", "validation", data_dir=str(moved))
    assert result["examples"] == 6
    rows = (moved / "train.csv").read_text().splitlines(keepends=True)
    (moved / "train.csv").write_text("".join(rows[::-1]))
    before = (tmp_path / "run/results/validation.json").read_bytes()
    flags = (f"--workdir={tmp_path}/run", "--split=validation", f"--data_dir={moved}")
    assert last_line(script("evaluate.py", *flags)) == (
        f"error: --workdir={tmp_path}/run: holds a run that began with other "
        "validation data; give the data that it was trained with, by --data_dir where "
        "that lies elsewhere now"
    )
    assert (tmp_path / "run/results/validation.json").read_bytes() == before
    result, _ = evaluate(tmp_path / "run", data_dir=str(moved))
    assert result["split"] == "test" and result["examples"] == 20


@pytest.mark.long
def test_two_devices_train_as_one(tmp_path, cache):
    """Two logical CPU devices, the same global batch: the same loss curve."""
    result = script("tests/training/two_devices.py", "listops", tmp_path, cache)
    assert result.returncode == 0, result.stderr
    assert "replicas drop different features: True" in result.stdout
    assert "random features, which are redrawn: True" in result.stdout
    one, two = (metrics(tmp_path / name) for name in ("one_device", "mirrored"))
    assert len(one) == len(two) == 9
    for first, second in zip(one, two, strict=True):
        assert first["step"] == second["step"]
        assert first["loss"] == pytest.approx(second["loss"], abs=1e-5)
        assert first["accuracy"] == pytest.approx(second["accuracy"], abs=0.02)


def test_a_run_starts_from_the_weights_of_another(run, cache, tmp_path, caplog):
    workdir, _ = run
    caplog.set_level("INFO", logger="transevolve")
    changes = {
        "train.init_from": str(workdir),
        "train.steps": 1,
        "data.bucket_lengths": (24,),
    }
    train_and_evaluate(listops_config(cache, **changes), tmp_path / "same")
    assert "did not take" not in caplog.text
    first, *_ = metrics(tmp_path / "same")
    assert first["loss"] < metrics(workdir)[0]["loss"]
    given = load_run(workdir)
    wider = {**given.config.model, "ffn_dim": 96}
    model = build_classifier(wider, given.tokenizer.vocabulary_size, 10)
    take_weights(model, given.tokenizer, workdir)
    assert "took " in caplog.text and "there, " in caplog.text
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(UserError, match="init_from=.*: expected weights that fit, fo"):
        take_weights(other, SymbolTokenizer(["a"]), workdir)
    with pytest.raises(UserError, match="expected a run of train.py, found none"):
        changes["train.init_from"] = str(tmp_path / "nothing")
        train_and_evaluate(listops_config(cache, **changes), tmp_path / "none")


def test_a_linear_run_starts_from_an_exact_one(run, cache, tmp_path):
    """With all of its weights: here it trains with next to no learning rate."""
    workdir, _ = run
    changes = {
        "train.init_from": str(workdir),
        "train.learning_rate_max": 1e-9,
        "train.steps": 1,
        "data.bucket_lengths": (24,),
    }
    config = listops_config(cache, "transevolve-randomff-1-linear", **changes)
    train_and_evaluate(config, tmp_path)
    found, given = load_run(tmp_path), load_run(workdir, attention="linear")
    assert found.config.variant == given.config.variant
    for weight, other in zip(found.model.weights, given.model.weights, strict=True):
        assert weight.path == other.path
        np.testing.assert_allclose(weight, other, rtol=0, atol=1e-8)


def test_benchmark_speed_prints_rows_and_draws(tmp_path):
    arguments = [
        "--models=transformer,transevolve-fullff-1",
        "--lengths=8,16",
        "--tokens_per_batch=32",
        "--mode=inference",
        f"--plot={tmp_path}/new/speed.png",
    ]
    result = script(SMALL_BENCHMARK, "speed", *arguments)
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["model"], row["length"]) for row in rows] == [
        ("transformer", 8),
        ("transevolve-fullff-1", 8),
        ("transformer", 16),
        ("transevolve-fullff-1", 16),
    ]
    assert (tmp_path / "new/speed.png").read_bytes().startswith(b"\x89PNG")
    assert "calls/s" in result.stderr


@pytest.mark.long
def test_benchmark_memory_prints_a_table():
    result = script(
        "benchmark.py",
        "memory",
        "--models=transformer",
        "--lengths=8",
        "--tokens_per_batch=16",
        "--markdown",
    )
    assert result.returncode == 0, result.stderr
    assert "| transformer | 8 |" in result.stdout


@pytest.mark.long
def test_benchmark_decode_prints_rows():
    result = script(
        SMALL_BENCHMARK,
        "decode",
        "--models=transevolve-fullff-1",
        "--size=small",
        "--lengths=2",
        "--beam=2",
        "--batch=2",
        "--norecompute",
    )
    assert result.returncode == 0, result.stderr
    (row,) = (json.loads(line) for line in result.stdout.splitlines())
    assert row["length"] == 2 and "tokens_per_second" in row


@pytest.mark.long
def test_benchmark_stream_prints_rows():
    result = script("benchmark.py", "stream", "--pairs=10000")
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 11 and rows[-1]["pairs"] == 10_000
    peaks = [row["peak_memory_mb"] for row in rows]
    assert peaks == sorted(peaks) and peaks[0] > 0
    assert all("pairs_per_second" in row for row in rows[1:])


def test_benchmark_input_takes_the_flags_of_train(cache):
    flags = {**FLAGS, "data.cache_dir": cache}
    result = script(
        "benchmark.py",
        "input",
        "--config=configs/listops.py:transevolve-fullff-1",
        *(f"--config.{name}={value}" for name, value in flags.items()),
    )
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["stage"] for row in rows] == ["tokenize", "batch", "train"]
    assert rows[-1]["ratio_to_training"] == 1
    assert all(row["tokens_per_second"] > 0 for row in rows)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["fast"], "error: expected a command out of"),
        (["speed", "--lengths=1k"], "error: --lengths: expected whole numbers from"),
        (["speed", f"--lengths={10**30}"], "error: --lengths: expected whole numbers"),
        (["decode", "--beam=999999999"], "error: flag --beam=999999999: 999999999 is"),
        (["params", "--plot=x.png"], "error: Unknown command line flag 'plot'"),
        (["speed", "--plot=x.pdf"], "error: --plot: expected a name in .png"),
        (["memory", "--plot=/proc/x/y.png"], "error: --plot=/proc/x/y.png: expected a"),
        (["input"], "error: --config: expected a task and variant"),
    ],
)
def test_benchmark_names_the_mistake(arguments, message):
    result = script("benchmark.py", *arguments)
    assert result.returncode != 0
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1
