"""What export.py writes, what it refuses, and what it leaves behind."""

import json
import math
import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from common.errors import UserError
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from export import saved_model
from export.saved_model import export
from models import count_parameters
from tests import scripts
from tests.conftest import ROOT
from tests.export.cases import config_of
from tests.models.builders import randomize
from tests.runs import untrained
from training.run_state import LAST, RunState
from training.tensorflow.checkpoints import Checkpoints

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


@pytest.mark.parametrize(
    "output, reason",
    [
        ("w[1]", r"expected a path without [ ] \, which TensorFlow takes for a"),
        (
            "back\\slash/x",
            r"expected a path without [ ] \, which TensorFlow takes for a",
        ),
        ("loop", "expected a folder that can be written, found {}: a loop of links"),
        ("file", "expected a folder that can be written, found {}: a file"),
        ("file/x", "expected a folder that can be written, found {}: a file"),
        (
            "/dev/null",
            "expected a folder that can be written, found /dev/null: a device",
        ),
        ("/proc/x", "expected a folder that can be written, found /proc: "),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_the_run_is_read(
    output, reason, tmp_path, monkeypatch
):
    monkeypatch.setattr(saved_model, "load_run", None)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before, devices = files(tmp_path), os.listdir("/dev")
    with pytest.raises(UserError) as caught:
        export(tmp_path / "run", tmp_path / output)
    path = tmp_path / output.removesuffix("/x")
    said = str(caught.value)
    assert said.startswith(f"--output={tmp_path / output}: {reason.format(path)}")
    assert (files(tmp_path), os.listdir("/dev")) == (before, devices)


def test_characters_that_tensorflow_misreads_in_a_path(tmp_path):
    """No others are: `answer.py` and the card name the same three."""
    module = tf.Module()
    module.weight = tf.Variable(1.0)
    tf.saved_model.save(module, str(tmp_path / "a"))
    path = tmp_path / "a"
    for name in (
        "*",
        "?",
        "{a}",
        "a b",
        "$a",
        "%",
        "'",
        '"',
        "~",
        "ü",
        "a:b",
        "[1]",
        "\\",
    ):
        path = path.rename(tmp_path / name)
        if set(saved_model.MISREAD) & set(name):
            with pytest.raises((OSError, tf.errors.NotFoundError)):
                tf.saved_model.load(str(path))
        else:
            assert tf.saved_model.load(str(path)).weight == 1


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


@pytest.mark.long
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


@pytest.mark.long
def test_another_answer_under_the_folders_name_is_noticed(run, tmp_path, monkeypatch):
    script = saved_model._script

    def wrong(text_model):
        line = "print(json.dumps(outputs)"
        change = "outputs['scores'][0] += 0.1 * (folder.name == 'export'); "
        return script(text_model).replace(line, change + line)

    monkeypatch.setattr(saved_model, "_script", wrong)
    with pytest.raises(UserError, match="expected the answers of the run"):
        export(run, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_half_the_bytes(exported, tmp_path):
    run, whole, told = exported
    half = export(run.workdir, tmp_path / "half", dtype="bfloat16")
    assert half["parameters"] == told["parameters"]
    for name, (before, after) in half["validation"].items():
        # Of 50 or 70 examples, and of translations that nobody has learned.
        far = 0.1 if name in ("accuracy", "loss") else 1
        assert math.isclose(before, after, rel_tol=0.05, abs_tol=far), name
    sizes = [
        sum(path.stat().st_size for path in folder.rglob("*.data-*"))
        for folder in (tmp_path / "half", whole)
    ]
    assert sizes[0] < 0.6 * sizes[1]
    assert "What rounding costs" in (tmp_path / "half/README.md").read_text()


def test_the_card_says_what_was_exported(exported):
    run, folder, told = exported
    assert told["export"] == str(folder / "1")
    assert told["parameters"] == run.model.count_params()
    card = (folder / "README.md").read_text()
    translates = "score" in run.text_model.signatures
    result = json.loads((run.workdir / "results/test.json").read_text())
    examples = result["examples"]
    for text in (
        f"# transevolve-randomff-1, {run.config.task}",
        f"| test | {examples} | {'bleu_13a' if translates else 'accuracy'} | ",
        f"| parameters | {told['parameters']:,} |",
        "`n_best` | `text` string [?]" if translates else "`scores` float32 [?, 10]",
        "first 1,023 subwords" if translates else "first 24 tokens",
        "cannot run this" if translates else "saved_model_cli run",
        *(f"`{character}`" for character in saved_model.MISREAD),
    ):
        assert text in card, text
    assert translates == ("import tensorflow_text" in card)


def test_the_script_answers_lines_in_any_folder(exported, tmp_path):
    run, folder, _ = exported
    folder = shutil.copytree(folder, tmp_path / "moved [1]/\\")
    lines = ["[MAX 1 2 ]", "", "a film about news", "[MAX " + 1024 * "1 " + "]"]
    command = [sys.executable, "-I", folder / "answer.py"]
    text = "\ufeff" + "".join(line + "\n" for line in lines)  # as some editors begin
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", cwd=folder
    )
    answers = run.predict(lines)
    assert done.stdout.splitlines() == [str(answer) for answer in answers]
    errors = [getattr(answer, "error", "") for answer in answers]
    said = [f"line {i}: {error}" for i, error in enumerate(errors, 1) if error]
    cut = [f"line {i}: cut" for i, answer in enumerate(answers, 1) if answer.truncated]
    last = ["error: 2 of 4 lines have no answer, see above"] if said else []
    assert done.stderr.splitlines()[-len(said + cut + last) :] == said + cut + last
    assert done.returncode == bool(said) and cut == ["line 4: cut"]


@pytest.mark.long
def test_a_terminal_is_answered_line_by_line(exported):
    _, folder, _ = exported
    keyboard, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-I", folder / "answer.py"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.write(keyboard, b"[MAX 1 2 ]\n")
        assert select.select([process.stdout], [], [], 120)[0]
        process.stdout.readline()
        os.write(keyboard, b"\x04")
        assert process.wait(120) == 0
    os.close(keyboard)
    os.close(terminal)


@pytest.mark.long
def test_mean_weights_and_another_search(tmp_path):
    config = config_of("multi30k", "transevolve-fullff-1", tmp_path)
    workdir = untrained(config, tmp_path / "run")
    model = load_run(workdir).model
    checkpoints, total = Checkpoints(workdir, model, keep=2), 0
    for step in (1, 2):
        randomize(model, seed=step)
        total += model.embedding.embeddings.numpy()
        checkpoints.save(LAST, RunState(step=step))
    flags = ["--average_checkpoints=2", "--beam_size=2", "--extra_length=3"]
    folder = tmp_path / "export"
    result = scripts.script(
        "export.py", f"--workdir={workdir}", f"--output={folder}", *flags
    )
    assert result.returncode == 0, result.stderr
    card = (folder / "README.md").read_text()
    for text in (
        "the mean of the last 2 checkpoints",
        "| beam_size | 2 |",
        "`translations` string [?, 2]",
        "at most 3 subwords more",
    ):
        assert text in card, text
    # export.py has compared its answers with those of the weights that it holds.
    stored = tf.train.load_checkpoint(str(folder / "1/variables/variables"))
    shapes = stored.get_variable_to_shape_map()
    tables = [stored.get_tensor(x) for x in shapes if shapes[x] == [*total.shape]]
    assert any(np.allclose(table, total / 2, atol=1e-6) for table in tables)
    with pytest.raises(UserError, match="--average_checkpoints=3: expected"):
        export(workdir, tmp_path / "none", average_checkpoints=3)
    assert not (tmp_path / "none").exists()


def test_rounding_leaves_counters_alone(tmp_path):
    """As that which says when random features are redrawn."""
    config = config_of("listops", "transevolve-fullff-1-linear-favor", tmp_path)
    config.model.attention.redraw_every = 1
    run = load_run(untrained(config, tmp_path / "run"))
    (passes,) = run.model.non_trainable_weights
    assert count_parameters(run.model) == run.model.count_params() - 1
    passes.assign(257)  # bfloat16 has 256 and 258
    saved_model._round(run, run.model, "bfloat16")
    assert int(passes.value) == 257
    text_model = run.task.text_model(run.model, "bfloat16")
    pairs = zip(run.model.weights, text_model.weights, strict=True)
    assert [int(stored) for weight, stored in pairs if weight is passes] == [257]


@pytest.mark.long
def test_a_model_that_multiplies_in_bfloat16(tmp_path):
    config = config_of("listops", "transevolve-fullff-1", tmp_path)
    config.model.dtype = "mixed_bfloat16"
    workdir = untrained(config, tmp_path / "run")
    export(workdir, tmp_path / "export")  # it compares the answers with the run's
    card = (tmp_path / "export/README.md").read_text()
    assert "| arithmetic | mixed_bfloat16 |" in card
    assert "| stored as | float32 |" in card
