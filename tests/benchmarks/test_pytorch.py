"""PyTorch's process, with a library in its place that ends as that may end."""

import json

import pytest

from benchmarks import alone, models, pytorch
from benchmarks.calls import Setting
from tests import forked

# What is imported for `torch`: it takes every call, and answers a number.
TORCH = """
import os, signal, sys
from unittest.mock import MagicMock

def check():
    both = [name for name in ("tensorflow", "keras") if name in sys.modules]
    assert not both, f"{both} was imported"
    os.write(1, b"noise")
    print("more noise")
    return 0.5

check()
torch = sys.modules["torch"] = MagicMock()
torch.optim.Adam.return_value.step.side_effect = check
class LastQuestion:
    def __iter__(self):
        os._exit(5)
"""
CONFIG = {
    **models.model_config(models.PYTORCH, "small"),
    **Setting()._asdict(),
    **dict.fromkeys(("vocabulary_size", "num_classes", "num_subwords"), 8),
}
ENDS_AT_ONCE = {
    "os.kill(os.getpid(), signal.SIGSEGV)": "its process was ended by SIGSEGV",
    "os.kill(os.getpid(), signal.SIGKILL)": (
        "its process was ended by SIGKILL, as happens when memory runs out"
    ),
    "sys.exit(3)": "its process ended with code 3",
    "raise ImportError('libcuda.so:\\n no such file')": (
        "ImportError: libcuda.so: no such file"
    ),
    "import tensorflow_that_is_not_there": (
        "ModuleNotFoundError: No module named 'tensorflow_that_is_not_there'"
    ),
}
ENDS_IN_A_CALL = {
    "sys.stdin = LastQuestion()": "its process ended with code 5",
    "torch.optim.Adam.return_value.step.side_effect = MemoryError('no 5 GB')": (
        "MemoryError: no 5 GB"
    ),
}


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A function that writes the library, with a line that ends it."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def write(line=""):
        (tmp_path / "torch.py").write_text(f"{TORCH}\n{line}\n")
        return tmp_path

    return write


def test_tensorflow_is_not_imported_beside_it(library):
    """Nor is what it prints taken for an answer."""
    library()
    peer = pytorch.start(CONFIG, 1, 16)
    peer.call()
    peer.call()
    peer.close()


@pytest.mark.parametrize("line", ENDS_AT_ONCE)
def test_what_ended_it_at_once_is_said(library, line):
    library(line)
    with pytest.raises(alone.ProcessEnded) as error:
        pytorch.start(CONFIG, 1, 16)
    assert str(error.value) == f"pytorch at 16 tokens: {ENDS_AT_ONCE[line]}"


@pytest.mark.parametrize("line", ENDS_IN_A_CALL)
def test_what_ended_it_later_is_said(library, line):
    library(line)
    peer = pytorch.start(CONFIG, 1, 16)
    with pytest.raises(alone.ProcessEnded) as error:
        peer.call()
    assert str(error.value) == f"pytorch at 16 tokens: {ENDS_IN_A_CALL[line]}"
    peer.close()


@pytest.mark.slow
@pytest.mark.script
def test_the_rest_is_measured_and_the_command_fails(library):
    folder = library("os.kill(os.getpid(), signal.SIGSEGV)")
    (folder / "out").mkdir()
    flags = ["--models=pytorch,transformer", "--lengths=16", "--tokens_per_batch=16"]
    process = forked.start(
        "tests/benchmarks/small.py",
        ["speed", *flags],
        folder / "out",
        environment={"PYTHONPATH": str(folder)},
    )
    process.join(120)
    lines = (folder / "out/stdout").read_text().splitlines()
    lost, measured = map(json.loads, lines)
    reason = "pytorch at 16 tokens: its process was ended by SIGSEGV"
    assert lost["not_run"] == reason and measured["seconds"] > 0
    said = (folder / "out/stderr").read_text().splitlines()[-1]
    assert said == f"error: 1 of 2 rows have no figures; the first says: {reason}"
    assert process.exitcode == 1
