"""What README and docs show works as it stands there."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from absl import flags
from ml_collections import config_flags

from common.cli import parse_flags
from reporting import flags as flags_page
from tests import scripts, translation
from tests.conftest import ROOT
from training import config as configuration
from training.train import train_and_evaluate

README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]


ROOMS = re.findall(r"^\| `(\w+)/` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
# As CONTRIBUTING.md says.
UPWARD = {("training", "tasks"), ("export", "evaluation"), ("export", "reporting")}


def imported(path):
    """The rooms of which a file imports something."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)


def test_lower_rooms_never_import_higher_ones():
    files = {room: list((ROOT / room).rglob("*.py")) for room in ROOMS[:-1]}
    assert all(files.values())
    upward = {
        (room, other)
        for room, paths in files.items()
        for path in paths
        for other in imported(path)
        if other in ROOMS and ROOMS.index(other) > ROOMS.index(room)
    }
    assert upward == UPWARD


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def commands(name):
    """The lines of a page's commands that start so, as lists of arguments."""
    found = []
    for page in PAGES:
        for block in blocks(page.read_text(), "bash"):
            for line in block.replace("\\\n", "").splitlines():
                words = shlex.split(line, comments=True)
                if words[:2] == ["python", name]:
                    found.append(words[1:])
    return found


@pytest.mark.parametrize("argv", commands("train.py"), ids=lambda argv: argv[1])
def test_training_commands_are_sound(argv, monkeypatch):
    monkeypatch.chdir(ROOT)
    values = flags.FlagValues()
    for name in ("workdir", "strategy", "tpu"):
        flags.DEFINE_string(name, None, "", flag_values=values)
    config = config_flags.DEFINE_config_file(
        "config", flag_values=values, sys_argv=argv
    )
    parse_flags(argv, values)
    configuration.check(config.value)
    assert values.workdir


@pytest.mark.parametrize("argv", commands("reproduce.py"), ids=" ".join)
def test_flags_of_reproducing_are_its_own(argv):
    script = (ROOT / "reproduce.py").read_text()
    known = {"strategy", "tpu", *re.findall(r'DEFINE_\w+\(\s*"(\w+)"', script)}
    found = {argument.lstrip("-").partition("=")[0] for argument in argv[1:]}
    assert found <= known


def test_what_is_evaluated_has_been_trained():
    trained = {argument for argv in commands("train.py") for argument in argv}
    for argv in commands("evaluate.py"):
        assert argv[1] in trained


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_field_is_on_the_flags_page():
    page = (ROOT / "docs/flags.md").read_text()
    for title, table in flags_page.tables():
        if table:
            assert f"### {title}\n\n{table}" in page, "python -m reporting.flags"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with the runs that README's lines open, hardly trained."""
    folder = tmp_path_factory.mktemp("docs")
    short = {"train.steps": 2, "data.bucket_lengths": (24,)}
    config = scripts.listops_config(folder / "cache", **short)
    train_and_evaluate(config, folder / "runs/listops")
    translation.write(folder)
    train_and_evaluate(translation.config(folder, **short), folder / "runs/multi30k")
    return folder


@pytest.mark.slow
@pytest.mark.script
def test_the_python_lines_of_readme_run_as_they_stand(runs):
    shown = blocks(README, "python")
    assert len(shown) == 2
    assert all(len(lines.splitlines()) == 6 for lines in shown)
    # One interpreter imports TensorFlow once; each has names of its own.
    done = subprocess.run(
        [sys.executable, "-c", f"for lines in {shown}: exec(lines, {{}}), print()"],
        cwd=runs,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.split("\n\n")[:-1]
    assert [len(printed.splitlines()) for printed in answers] == [3, 3]


def test_every_test_folder_mirrors_one():
    for folder in (ROOT / "tests").iterdir():
        if (folder / "__init__.py").exists():
            assert Path(ROOT / folder.name).is_dir(), folder.name
