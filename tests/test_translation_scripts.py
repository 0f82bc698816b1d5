"""Translation as a user runs it: files in, a trained model, BLEU, lines translated."""

import gzip
import json
import os
import pty
import random
import re
import select
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.test_scripts import metrics, script

WORDS = {
    "one": "eins",
    "two": "zwei",
    "three": "drei",
    "four": "vier",
    "five": "fünf",
    "six": "sechs",
}
FLAGS = {
    "data.vocab_size": 300,
    "data.max_length": 24,
    "data.bucket_lengths": "(12,24)",
    "model.hidden_dim": 64,
    "model.ffn_dim": 128,
    "model.num_heads": 4,
    "model.num_depths": 2,
    "model.dropout": 0.1,
    "train.batch_size": 32,
    "train.steps": 300,
    "train.learning_rate_max": 0.5,
    "train.warmup_steps": 100,
    "train.checkpoint_every": 100,
    "train.keep_checkpoints": 2,
    "train.log_every": 50,
    "decode.batch_size": 8,
    "decode.extra_length": 6,
}


def write(folder):
    generator = random.Random(0)
    for name, count in (("train", 600), ("val", 20), ("test_2016_flickr", 20)):
        sources = [generator.choices(list(WORDS), k=1 + i % 5) for i in range(count)]
        texts = {
            "en": [" ".join(words) for words in sources],
            "de": [" ".join(WORDS[word] for word in words) for words in sources],
        }
        for language, lines in texts.items():
            with gzip.open(folder / f"{name}.{language}.gz", "wt") as file:
                file.write("".join(line + "\n" for line in lines))


def train(workdir, data, variant="transevolve-fullff-1", **changes):
    flags = {**FLAGS, "data.dir": data, "data.cache_dir": data / "cache", **changes}
    return script(
        "train.py",
        f"--config=configs/multi30k.py:{variant}",
        f"--workdir={workdir}",
        *(f"--config.{name}={value}" for name, value in flags.items()),
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parallel")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory, data):
    workdir = tmp_path_factory.mktemp("run")
    result = train(workdir, data)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["step"] == 300
    return workdir


def test_train_leaves_a_whole_workdir(run):
    rows = metrics(run)
    validation = [row for row in rows if row["split"] == "validation"]
    assert [row["step"] for row in validation] == [100, 200, 300]
    assert validation[-1]["accuracy"] > 0.9
    for name in ("config.json", "tokenizer/subwords.model", "checkpoints/last"):
        assert (run / name).exists(), name


def test_evaluate_scores_and_keeps_the_hypotheses(run):
    result = script("evaluate.py", f"--workdir={run}")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found == json.loads((run / "results/test.json").read_text())
    assert found["task"] == "multi30k" and found["examples"] == 20
    assert found["languages"] == "en-de" and "published" not in found
    assert found["test_set"] == "test_2016_flickr"
    assert min(found[name] for name in ("bleu_13a", "bleu_authors", "chrf")) > 50
    assert "tok:13a" in found["signatures"]["bleu_13a"]
    assert len((run / "results/test.txt").read_text().splitlines()) == 20
    for text in ("| bleu_intl |", "source: ", "reference: ", "hypothesis: "):
        assert text in result.stderr
    assert "translating test" in result.stderr


def test_averaged_checkpoints_and_their_mean(run):
    result = script("evaluate.py", f"--workdir={run}", "--average_checkpoints=2")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["bleu_13a"] > 50 and found["mean_of_checkpoints"]["bleu_13a"] > 50
    assert "| mean of 2 checkpoints |" in result.stderr
    assert (run / "results/test-average-2.txt").exists()


def test_lines_are_translated(run):
    result = script(
        "evaluate.py",
        f"--workdir={run}",
        "--interactive",
        input_text="two five\n\none\n",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "zwei fünf\n\neins\n"


def test_a_terminal_is_answered_line_by_line(run):
    keyboard, terminal = pty.openpty()
    time_limit = 120
    with subprocess.Popen(
        [sys.executable, "evaluate.py", f"--workdir={run}", "--interactive"],
        cwd=ROOT,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.write(keyboard, b"two five\n")
        assert select.select([process.stdout], [], [], time_limit)[0]
        assert process.stdout.readline() == "zwei fünf\n"
        os.write(keyboard, b"one\n\x04")
        rest, messages = process.communicate(timeout=time_limit)
    os.close(keyboard)
    os.close(terminal)
    assert rest == "eins\n" and process.returncode == 0
    assert "en to de; end with Ctrl-D" in messages


def test_the_search_can_be_set(run):
    flags = ("--beam_size=1", "--length_penalty=1")
    result = script("evaluate.py", f"--workdir={run}", "--split=validation", *flags)
    assert result.returncode == 0, result.stderr
    name = "validation-beam_size-1-length_penalty-1.0.json"
    decode = json.loads((run / "results" / name).read_text())["decode"]
    assert (decode["beam_size"], decode["length_penalty"]) == (1, 1.0)
    assert decode["extra_length"] == FLAGS["decode.extra_length"]
    for flag, found in (
        ("--beam_size=0", "--beam_size=0"),
        ("--length_penalty=nan", "length_penalty: expected a finite number, found nan"),
    ):
        result = script("evaluate.py", f"--workdir={run}", flag)
        assert result.returncode == 1 and found in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_lines_that_are_not_text_are_translated_too(run):
    process = subprocess.run(
        [sys.executable, "evaluate.py", f"--workdir={run}", "--interactive"],
        cwd=ROOT,
        input=b"two \xff\rfive\none\n",
        capture_output=True,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.decode().splitlines()[1] == "eins"


def test_the_published_figure_stands_beside_the_authors_bleu(run, tmp_path, data):
    shutil.copytree(run, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    config["data"]["test_name"] = "newstest2014"
    config["data"]["dir"] = str(tmp_path)
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    for language in ("en", "de"):
        shutil.copy(
            data / f"test_2016_flickr.{language}.gz",
            tmp_path / f"newstest2014.{language}.gz",
        )
    result = script("evaluate.py", f"--workdir={tmp_path / 'run'}")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["published"] == 25.8
    (row,) = (line for line in result.stderr.splitlines() if "25.8" in line)
    assert row.startswith("| bleu_authors |") and row.endswith("| 25.8 |")


def test_a_missing_validation_file_is_named_first(tmp_path, data):
    for language in ("en", "de"):
        shutil.copy(data / f"train.{language}.gz", tmp_path)
    result = train(tmp_path / "run", tmp_path)
    assert result.returncode == 1
    assert result.stderr == (
        f"error: {tmp_path}: expected the file val.en or val.en.gz, found neither\n"
    )


def test_an_empty_test_set_is_named(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    config["data"]["dir"] = str(tmp_path)
    config["data"]["on_error"] = "skip"
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    for language in ("en", "de"):
        (tmp_path / f"test_2016_flickr.{language}").write_text("\n")
    result = script("evaluate.py", f"--workdir={tmp_path / 'run'}")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "error: en-de test: expected pairs, found none"
    )


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(run, tmp_path, data):
    for steps in (100, 300):
        result = train(tmp_path, data, **{"train.steps": steps})
        assert result.returncode == 0, result.stderr
    assert "going on from step 100" in result.stderr
    assert (tmp_path / "metrics.jsonl").read_text() == (
        run / "metrics.jsonl"
    ).read_text()


def damage(folder, data, line):
    """Copies the text to a folder; one German line for training is not UTF-8."""
    for name in ("train", "val"):
        for language in ("en", "de"):
            with gzip.open(data / f"{name}.{language}.gz") as file:
                lines = file.read().splitlines(keepends=True)
            if (name, language) == ("train", "de"):
                lines[line - 1] = b"\xff\n"
            (folder / f"{name}.{language}").write_bytes(b"".join(lines))


def test_a_damaged_file_ends_the_run_with_one_line(run, tmp_path, data):
    damage(tmp_path, data, line=5)
    given = {"data.vocab_file": run / "tokenizer/subwords.model"}
    # The last one is another run, for which nothing stands in the way.
    for changes in ({}, given, {**given, "train.batch_size": 16}):
        result = train(tmp_path / "run", tmp_path, **changes)
        assert result.returncode == 1
        error = result.stderr.splitlines()[-1]
        assert error.startswith("error: ") and "train.de:5: expected UTF-8" in error
        assert "Traceback" not in result.stderr


def test_what_was_learned_before_a_damaged_line_is_kept(run, tmp_path, data):
    damage(tmp_path, data, line=500)
    changes = {
        "data.vocab_file": run / "tokenizer/subwords.model",
        "data.shuffle_window": 100,
        "train.steps": 40,
    }
    result = train(tmp_path / "run", tmp_path, **changes)
    assert result.returncode == 1
    assert "train.de:500: expected UTF-8" in result.stderr.splitlines()[-1]
    result = train(tmp_path / "run", tmp_path, **changes, **{"data.on_error": "skip"})
    assert result.returncode == 0, result.stderr
    assert re.search(r"going on from step [1-9]", result.stderr)
    assert "1 bad rows skipped" in result.stderr


def test_two_devices_train_as_one(tmp_path, data):
    arguments = ("translation", tmp_path, data)
    result = script("tests/training/two_devices.py", *arguments)
    assert result.returncode == 0, result.stderr
    one, two = (metrics(tmp_path / name) for name in ("one_device", "mirrored"))
    assert [row["step"] for row in one] == [5, 10, 10, 15, 20, 20]
    for first, second in zip(one, two, strict=True):
        assert first["step"] == second["step"]
        assert first["loss"] == pytest.approx(second["loss"], abs=1e-3)


def test_benchmark_input_of_a_translation(data):
    flags = {**FLAGS, "data.dir": data, "data.cache_dir": data}
    result = script(
        "benchmark.py",
        "input",
        "--config=configs/multi30k.py:transevolve-fullff-1",
        *(f"--config.{name}={value}" for name, value in flags.items()),
    )
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["stage"] for row in rows] == ["batch", "train"]
    assert all(row["tokens_per_second"] > 0 for row in rows)
