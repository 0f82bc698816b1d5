"""Machine, versions and commit."""

import os
import shutil
import subprocess
import sys

import pytest

from reproduction import facts
from tests.conftest import ROOT


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A function that runs git in a new folder, and the folder."""
    if not shutil.which("git"):
        pytest.skip("no git here")
    # Neither a repository above nor settings of this machine's user.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    (tmp_path / "reproduction").mkdir()
    (tmp_path / "reproduction/__init__.py").write_text("")

    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(
            ["git", "-C", tmp_path, *identity, *arguments],
            check=True,
            capture_output=True,
        )

    return git, tmp_path


def test_facts_are_words():
    found = facts.facts()
    assert list(found) == ["machine", "versions", "commit", "date"]
    assert all(isinstance(text, str) and text for text in found.values())
    assert "cores" in found["machine"] and "tensorflow 2." in found["versions"]


def test_facts_start_no_tensorflow():
    code = (
        "import sys; from reproduction.facts import facts; facts(); "
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_outside_of_git(checkout, monkeypatch):
    git, folder = checkout
    assert facts.commit(folder) == "unknown"
    assert facts.commit(folder / "missing") == "unknown"
    monkeypatch.setenv("PATH", str(folder))  # no git at all
    assert facts.commit(folder) == "unknown"


def test_commit_and_changes(checkout):
    git, folder = checkout
    git("init")
    assert facts.commit(folder) == "unknown"  # nothing committed yet
    git("commit", "--allow-empty", "-m", "of something else")
    assert facts.commit(folder) == "unknown"
    git("add", "reproduction")
    git("commit", "-m", "one")
    commit = facts.commit(folder)
    assert len(commit) == 40 and set(commit) <= set("0123456789abcdef")
    (folder / "reproduction/__init__.py").write_text("1\n")
    assert facts.commit(folder) == f"{commit} with changes"


def test_a_machine_without_proc(monkeypatch, tmp_path):
    for name in ("CPUS", "MEMORY", "GPUS"):
        monkeypatch.setattr(facts, name, tmp_path / "missing")
    assert "cores" in facts.machine()


def test_gpus_are_named(monkeypatch, tmp_path):
    (tmp_path / "0000:01:00.0").mkdir()
    information = tmp_path / "0000:01:00.0/information"
    information.write_text("Model: \t\t NVIDIA H200\nIRQ:   \t\t 42\n")
    monkeypatch.setattr(facts, "GPUS", tmp_path)
    assert facts.machine().endswith(", GPU NVIDIA H200")
