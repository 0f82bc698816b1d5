"""A language model from training to an export, as a user runs the scripts."""

import json

import pytest

from tests import plain_text
from tests.scripts import script

pytestmark = [pytest.mark.slow, pytest.mark.script]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return plain_text.write(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def run(data):
    """A run that has been stopped and taken up again."""
    flags = {
        **plain_text.CHANGES,
        "data.dir": data,
        "data.cache_dir": data / "cache",
        "data.memory": True,
        "model.positions": "none",
    }
    for steps in (30, 60):
        flags["train.steps"] = steps
        result = script(
            "train.py",
            "--config=configs/plain_text.py:transevolve-fullff-1-delta,laptop",
            f"--workdir={data}/run",
            *(f"--config.{name}={value}" for name, value in flags.items()),
        )
        assert result.returncode == 0, result.stderr
    assert "going on from step 30" in result.stderr
    return data / "run"


def test_it_has_learned_to_count(run):
    result = script("evaluate.py", f"--workdir={run}")
    scores = json.loads(result.stdout)
    # Ten starts, and one end in 5 or 6: of ten words alone it would be 10.
    assert scores["perplexity"] < 4
    slid = json.loads(
        script("evaluate.py", f"--workdir={run}", "--sliding_window").stdout
    )
    assert slid["tokens"] == scores["tokens"] and slid["perplexity"] < 4
    assert (run / "results/test-sliding_window-True.json").exists()


@pytest.mark.parametrize("flag", ["--temperature=0", "--beam_size=2"])
def test_it_goes_on_with_a_text(run, flag):
    arguments = (f"--workdir={run}", "--interactive", flag)
    result = script("evaluate.py", *arguments, input_text="one two three\nseven\n")
    first, second = result.stdout.splitlines()
    assert first.startswith("four five") and second.startswith("eight nine")


def test_other_seeds_draw_other_texts(run):
    arguments = (f"--workdir={run}", "--interactive", "--temperature=100")
    drawn = [
        script("evaluate.py", *arguments, *seed, input_text="one two three\n").stdout
        for seed in ((), ("--seed=0",), ("--seed=1",))
    ]
    # The run's seed is 0.
    assert drawn[0] == drawn[1] != drawn[2]


def test_it_scores_texts(run):
    lines = "one two three four five\none three two four five\n"
    result = script("evaluate.py", f"--workdir={run}", "--score", input_text=lines)
    right, wrong = (line.split("\t") for line in result.stdout.splitlines())
    assert right[1] == wrong[1] == "6"
    assert float(right[0]) > float(wrong[0]) + 3


@pytest.mark.long
def test_its_export_answers(run, tmp_path):
    result = script("export.py", f"--workdir={run}", f"--output={tmp_path}/export")
    assert result.returncode == 0, result.stderr
    assert set(json.loads(result.stdout)["signatures"]) == {
        *("serving_default", "encode", "score")
    }


def test_length_of_a_translation_is_no_field_of_it(run):
    result = script("evaluate.py", f"--workdir={run}", "--extra_length=2")
    assert result.returncode == 1
    assert "decode.extra_length" in result.stderr.splitlines()[-1]
