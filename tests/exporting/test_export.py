"""What export.py writes, what it refuses, and what it leaves behind."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import UserError
from exporting import export as exporting
from exporting.export import export
from tests import scripts
from tests.conftest import ROOT
from tests.exporting.cases import config_of
from tests.runs import untrained
from training.evaluation import evaluate
from training.run import load_run

pytestmark = [pytest.mark.slow, pytest.mark.script]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    config = config_of("listops", "transevolve-fullff-1", folder)
    return untrained(config, folder / "run")


@pytest.fixture(
    scope="module", params=["listops", pytest.param("multi30k", marks=pytest.mark.long)]
)
def exported(request, tmp_path_factory):
    """A run that has been evaluated, and its export by the script."""
    folder = tmp_path_factory.mktemp("exported")
    config = config_of(request.param, "transevolve-randomff-1", folder)
    workdir = untrained(config, folder / "run")
    evaluate(workdir)
    result = scripts.script(
        "export.py", f"--workdir={workdir}", f"--output={folder / 'new/export'}"
    )
    assert result.returncode == 0, result.stderr
    return load_run(workdir), folder / "new/export", json.loads(result.stdout)


def files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


def test_a_folder_that_is_not_empty_stays_as_it_is(run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    result = scripts.script("export.py", f"--workdir={run}", f"--output={tmp_path}")
    assert scripts.last_line(result) == (
        f"error: --output={tmp_path}: expected an empty folder or none"
    )
    assert files(tmp_path) == [Path("notes.txt")]


def test_a_run_without_a_checkpoint_leaves_nothing(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    shutil.rmtree(tmp_path / "run/checkpoints")
    with pytest.raises(UserError, match="expected a checkpoint, found none yet"):
        export(tmp_path / "run", tmp_path / "export")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_damaged_checkpoint_is_named(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    (path,) = (tmp_path / "run/checkpoints/best/1").glob("*.data-*")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{path.name}: expected the content that was"):
        export(tmp_path / "run", tmp_path / "export")
    assert not (tmp_path / "export").exists()


def test_a_full_disk_leaves_nothing(run, tmp_path):
    command = [
        sys.executable,
        "export.py",
        f"--workdir={run}",
        f"--output={tmp_path}/x",
    ]
    # No file above 20 KB: what writes more is told as it would be on a full disk.
    limited = ["bash", "-c", 'ulimit -f 20; exec "$@"', "bash", *command]
    result = subprocess.run(limited, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1
    said = scripts.last_line(result)
    assert said.startswith(f"error: --output={tmp_path}/x: not written: ")
    assert "too large" in said
    assert list(tmp_path.iterdir()) == []


def test_another_answer_is_noticed(run, tmp_path, monkeypatch):
    script = exporting._script

    def wrong(text_model):
        line = "print(json.dumps(outputs)"
        return script(text_model).replace(line, "outputs['scores'][0] += 0.1; " + line)

    monkeypatch.setattr(exporting, "_script", wrong)
    with pytest.raises(UserError, match="expected the answers of the run"):
        export(run, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


def test_half_the_bytes(exported, tmp_path):
    run, whole, told = exported
    half = export(run.workdir, tmp_path / "half", dtype="bfloat16")
    assert half["parameters"] == told["parameters"]
    for before, after in half["validation"].values():
        assert math.isclose(before, after, rel_tol=0.05, abs_tol=0.5)
    sizes = [
        sum(path.stat().st_size for path in folder.rglob("*.data-*"))
        for folder in (tmp_path / "half", whole)
    ]
    assert sizes[0] < 0.6 * sizes[1]
    assert "What rounding costs" in (tmp_path / "half/README.md").read_text()
    with pytest.raises(UserError, match="expected an empty folder or none"):
        export(run.workdir, tmp_path / "half")


def test_the_card(exported):
    run, folder, told = exported
    assert told["export"] == str(folder / "1")
    assert told["parameters"] == run.model.count_params()
    card = (folder / "README.md").read_text()
    translates = "score" in run.text_model.signatures
    for text in (
        f"# transevolve-randomff-1, {run.config.task}",
        f"| test | 70 | {'bleu_13a' if translates else 'accuracy'} | ",
        f"| parameters | {told['parameters']:,} |",
        "`n_best` | `text` string [?]" if translates else "`scores` float32 [?, 10]",
        "first 1,023 subwords" if translates else "first 24 tokens",
        "cannot run this" if translates else "saved_model_cli run",
    ):
        assert text in card, text
    assert translates == ("import tensorflow_text" in card)


def test_the_script_answers_lines(exported):
    run, folder, _ = exported
    lines = ["[MAX 1 2 ]", "", "a film about news"]
    command = [sys.executable, "-I", folder / "answer.py"]
    text = "".join(line + "\n" for line in lines)
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(answer) for answer in run.predict(lines)]
