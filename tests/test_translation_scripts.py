"""Translation as a user runs it: files in, a trained model, BLEU, lines translated."""

import gzip
import json
import math
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

from common.errors import UserError
from data.rows import DataError
from decoding.translation import Translator
from evaluation.evaluate import evaluate, evaluate_each
from evaluation.run import load_run
from reporting.evaluation import markdown
from tests import translation
from tests.conftest import ROOT
from tests.scripts import metrics, script
from tests.translation import FLAGS, train, write
from training import workdir as workdirs
from training.train import train_and_evaluate

pytestmark = [pytest.mark.slow, pytest.mark.script]


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


@pytest.mark.long
def test_the_same_weights_translate_a_split_once(run, tmp_path, monkeypatch):
    workdir = shutil.copytree(run, tmp_path / "run")
    (best,) = (workdir / "checkpoints/best").iterdir()
    last = max((workdir / "checkpoints/last").iterdir(), key=lambda x: int(x.name))
    assert best.name == last.name
    translated, seconds, translate = [], [], Translator.translate

    def counting(self, sources, *arguments):
        translated.append(len(sources))
        start = time.monotonic()
        translations = translate(self, sources, *arguments)
        seconds.append(time.monotonic() - start)
        return translations

    monkeypatch.setattr(Translator, "translate", counting)
    evaluate_each(workdir, [("test", 0), ("test", 2), ("validation", 0)])
    test, mean, validation = (
        json.loads((workdir / f"results/{name}.json").read_text())
        for name in ("test", "test-average-2", "validation")
    )
    # The best weights, their mean with those before, and those before.
    assert translated == 3 * [test["examples"]] + [validation["examples"]]
    assert mean["checkpoints"][-1]["chrf"] == test["chrf"]
    rate = test["examples"] / seconds[0]
    assert test["sentences_per_second"] == pytest.approx(rate, rel=0.2)


def test_lines_are_translated(run):
    result = script(
        "evaluate.py",
        f"--workdir={run}",
        "--interactive",
        input_text="\ufefftwo five\n\none\n",  # a byte order mark is no text
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "zwei fünf\n\neins\n"


@pytest.mark.long
def test_the_best_few_and_what_they_score(run):
    text = "two five\n\none\n"
    arguments = (f"--workdir={run}", "--interactive", "--n_best=3")
    result = script("evaluate.py", *arguments, input_text=text)
    assert result.returncode == 0, result.stderr
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [len(row) for row in rows] == [2, 2, 2, 1, 2, 1, 2, 2, 2, 1]
    assert rows[0][1] == "zwei fünf" and rows[6][1] == "eins"
    assert rows[4] == ["0.0000", ""]
    best = "".join(f"two five\t{translation}\n" for _, translation in rows[:3])
    result = script("evaluate.py", f"--workdir={run}", "--score", input_text=best)
    assert result.returncode == 0, result.stderr
    for row, line in zip(rows, result.stdout.splitlines(), strict=False):
        log_prob, tokens = line.split("\t")
        penalty = ((5 + int(tokens)) / 6) ** 0.6
        # A translation may be written by other subwords than the tokenizer's.
        assert float(log_prob) / penalty <= float(row[0]) + 1e-3
    log_prob, tokens = result.stdout.splitlines()[0].split("\t")
    penalty = ((5 + int(tokens)) / 6) ** 0.6
    assert float(log_prob) / penalty == pytest.approx(float(rows[0][0]), abs=1e-3)


@pytest.mark.parametrize(
    "flags, text, message",
    [
        (["--score"], "one\teins\none\n", "line 2: expected text<TAB>translation, fo"),
        (["--interactive", "--n_best=9"], "one\n", "--n_best=9: expected at most the "),
        (["--n_best=2"], "", "--n_best: expected beside --interactive"),
        (["--score", "--interactive"], "", "--score: expected without --interactive"),
        (["--score", "--n_best=2"], "", "--n_best: --score does not take it"),
    ],
)
def test_what_cannot_be_scored_is_named(run, flags, text, message):
    result = script("evaluate.py", f"--workdir={run}", *flags, input_text=text)
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith(f"error: {message}")
    # What was right before it is answered.
    assert len(result.stdout.splitlines()) == text.count("\teins")


@pytest.mark.long
def test_a_megabyte_and_its_neighbours_are_answered(run):
    result = script(
        "evaluate.py",
        f"--workdir={run}",
        "--interactive",
        input_text="two five\n" + 250_000 * "one " + "\none\n",
    )
    assert result.returncode == 0, result.stderr
    first, _, last = result.stdout.splitlines()
    assert (first, last) == ("zwei fünf", "eins")
    assert "line 2: cut; The model reads the first 1,023 subwords" in result.stderr


@pytest.mark.long
def test_more_beams_than_words(run):
    result = script(
        "evaluate.py",
        f"--workdir={run}",
        "--interactive",
        "--beam_size=600",
        input_text="two five\n",
    )
    assert (result.returncode, result.stdout) == (0, "zwei fünf\n"), result.stderr


@pytest.mark.long
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
    result = script("evaluate.py", f"--workdir={run}", "--beam_size=0")
    assert result.returncode == 1 and "--beam_size=0" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    with pytest.raises(
        UserError, match="length_penalty: expected a number from 0 to 5"
    ):
        load_run(run, decode={"length_penalty": math.nan})


def test_lines_that_are_not_text_are_translated_too(run):
    # A lone surrogate is written as the byte 0xff.
    text = "two \udcff\rfive\none\n"
    result = script("evaluate.py", f"--workdir={run}", "--interactive", input_text=text)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[1] == "eins"


def change_config(workdir, changes):
    config, tokenizer = workdirs.read(workdir)
    config.update_from_flattened_dict(changes)
    data = json.loads((workdir / "data.json").read_text())
    workdirs.keep(config, tokenizer, data, workdir)


def test_the_published_figure_stands_beside_the_authors_bleu(run, tmp_path, data):
    shutil.copytree(run, tmp_path / "run")
    changes = {"data.test_name": "newstest2014", "data.dir": str(tmp_path)}
    change_config(tmp_path / "run", changes)
    for language in ("en", "de"):
        shutil.copy(
            data / f"test_2016_flickr.{language}.gz",
            tmp_path / f"newstest2014.{language}.gz",
        )
    result, found = evaluate(tmp_path / "run")
    assert result["published"] == 25.8
    (row,) = (line for line in markdown(found).splitlines() if "25.8" in line)
    assert row.startswith("| bleu_authors |") and row.endswith("| 25.8 |")


def test_a_missing_validation_file_is_named_first(tmp_path, data):
    for language in ("en", "de"):
        shutil.copy(data / f"train.{language}.gz", tmp_path)
    with pytest.raises(DataError) as error:
        train_and_evaluate(translation.config(tmp_path), tmp_path / "run")
    assert str(error.value) == (
        f"{tmp_path}: expected the file val.en or val.en.gz, found neither"
    )


def test_an_empty_test_set_is_named(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    changes = {"data.on_error": "skip", "data.dir": str(tmp_path)}
    change_config(tmp_path / "run", changes)
    for language in ("en", "de"):
        (tmp_path / f"test_2016_flickr.{language}").write_text("\n")
    with pytest.raises(DataError, match="^en-de test: expected pairs, found none$"):
        evaluate(tmp_path / "run")


def damage(folder, data, line):
    """Copies the text to a folder; one German line for training is not UTF-8."""
    for name in ("train", "val"):
        for language in ("en", "de"):
            with gzip.open(data / f"{name}.{language}.gz") as file:
                lines = file.read().splitlines(keepends=True)
            if (name, language) == ("train", "de"):
                lines[line - 1] = b"\xff\n"
            (folder / f"{name}.{language}").write_bytes(b"".join(lines))


@pytest.mark.long
def test_a_damaged_file_ends_the_run_with_one_line(run, tmp_path, data):
    damage(tmp_path, data, line=5)
    given = {"data.vocab_file": str(run / "tokenizer/subwords.model")}
    result = train(tmp_path / "run", tmp_path)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    error = result.stderr.splitlines()[-1]
    assert error.startswith("error: ") and "train.de:5: expected UTF-8" in error
    # Another run, for which nothing stands in the way.
    config = translation.config(tmp_path, **given, **{"train.batch_size": 16})
    with pytest.raises(DataError, match="train.de:5: expected UTF-8"):
        train_and_evaluate(config, tmp_path / "run")


@pytest.mark.long
def test_what_was_learned_before_a_damaged_line_is_kept(run, tmp_path, data, caplog):
    caplog.set_level("INFO")
    damage(tmp_path, data, line=500)
    changes = {
        "data.vocab_file": str(run / "tokenizer/subwords.model"),
        "data.shuffle_window": 100,
        "data.bucket_lengths": (24,),
        "train.steps": 30,
    }
    config = translation.config(tmp_path, **changes)
    with pytest.raises(DataError, match="train.de:500: expected UTF-8"):
        train_and_evaluate(config, tmp_path / "run")
    config = translation.config(tmp_path, **changes, **{"data.on_error": "skip"})
    assert train_and_evaluate(config, tmp_path / "run")["step"] == 30
    assert re.search(r"going on from step [1-9]", caplog.text)
    assert "1 bad rows skipped" in caplog.text


@pytest.mark.long
def test_two_devices_train_as_one(tmp_path, data):
    arguments = ("translation", tmp_path, data)
    result = script("tests/training/two_devices.py", *arguments)
    assert result.returncode == 0, result.stderr
    one, two = (metrics(tmp_path / name) for name in ("one_device", "mirrored"))
    assert [row["step"] for row in one] == [5, 10, 10, 15, 20, 20]
    for first, second in zip(one, two, strict=True):
        assert first["step"] == second["step"]
        assert first["loss"] == pytest.approx(second["loss"], abs=1e-3)


@pytest.mark.long
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
    # A pair has 1 to 5 words, of one subword or more, and an end on each side.
    lengths = [row["tokens_per_second"] / row["examples_per_second"] for row in rows]
    assert 4 < lengths[0] < 24 and lengths[0] == pytest.approx(lengths[1], rel=0.01)
    assert rows[1]["ratio_to_training"] == 1
