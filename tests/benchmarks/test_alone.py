"""Processes of their own: of a function, of another checkout and of PyTorch."""

import json
import subprocess
import sys

import pytest

from benchmarks import alone, calls, models, speed
from benchmarks.calls import Setting
from common.errors import UserError
from tests import forked
from tests.benchmarks.turns import made_up
from tests.conftest import ROOT
from tests.shallow import shallow_variant

NAME = "transevolve-fullff-1-none"
FUNCTIONS = """
import os, signal, sys
from common.errors import UserError

def add(*numbers):
    print("noise")
    os.write(1, b"more noise")
    return sum(numbers)

def count():
    yield from range(3)
    os._exit(5)

def refuse(words):
    raise UserError(words)

def end(how):
    exec(how)

def write_when_asked(path):
    for number in range(9):
        with open(path, "a") as file:
            file.write(str(number))
        yield

def sleep():
    import time
    print("begun", file=sys.stderr, flush=True)
    time.sleep(600)
"""
ENDS = {
    "os.kill(os.getpid(), signal.SIGSEGV)": "its process was ended by SIGSEGV",
    "os.kill(os.getpid(), signal.SIGKILL)": (
        "its process was ended by SIGKILL, as happens when memory runs out"
    ),
    "sys.exit(3)": "its process ended with code 3",
    "raise ImportError('libcuda.so:\\n no such file')": (
        "ImportError: libcuda.so: no such file"
    ),
}
# What a checkout must have, with a model that writes down its calls.
CHECKOUT = {
    "common/errors.py": "class UserError(Exception): pass",
    "benchmarks/calls.py": """
import os
from types import SimpleNamespace
from typing import NamedTuple

from common.errors import UserError


class Setting(NamedTuple):
    mode: str = "train"


def check(names, setting):
    if names == ["unknown"]:
        raise UserError("--models: expected another")


def prepare(name, setting, batch_size, length):
    def call():
        print("called", setting.mode)
        if name == "mortal":
            os._exit(1)
        with open("calls", "a") as file:
            file.write(f"{name} {setting.mode}\\n")

    prepared = SimpleNamespace(call=call, parameters=batch_size * length)
    if name != "earlier":
        prepared.steps = 4
    return prepared
""",
}
# What is imported for `torch`: it takes every call, and answers a number.
TORCH = """
import os, signal, sys
from unittest.mock import MagicMock

def check():
    both = [name for name in ("tensorflow", "keras") if name in sys.modules]
    assert not both, f"{both} was imported"
    return 0.5

check()
torch = sys.modules["torch"] = MagicMock()
torch.optim.Adam.return_value.step.side_effect = check
"""


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """The module of FUNCTIONS, imported here and in processes."""
    (tmp_path / "alone_functions.py").write_text(FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("alone_functions")
    del sys.modules["alone_functions"]


def test_what_a_function_prints_is_no_answer(functions):
    assert alone.run_alone("it", functions.add, 1, 2) == 3


def test_a_mistake_of_the_user_is_one_here(functions):
    with pytest.raises(UserError, match="^it: a mistake$") as error:
        alone.run_alone("it", functions.refuse, "a mistake")
    assert not isinstance(error.value, alone.ProcessEnded)


@pytest.mark.parametrize("how", ENDS)
def test_what_ended_a_process_is_said(functions, how):
    with pytest.raises(alone.ProcessEnded) as error:
        alone.run_alone("it", functions.end, how)
    assert str(error.value) == f"it: {ENDS[how]}"


def test_answers_come_one_by_one(functions):
    answers = alone.start("it", "alone_functions:count")
    assert [next(answers) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(alone.ProcessEnded, match="^it: .* ended with code 5$"):
        next(answers)


def test_a_step_is_taken_only_when_it_is_asked_for(functions, tmp_path):
    path = tmp_path / "steps"
    answers = alone.start("it", "alone_functions:write_when_asked", str(path))
    assert not path.exists()
    next(answers)
    next(answers)
    assert path.read_text() == "01"
    answers.close()
    assert path.read_text() == "01"


def test_no_orphan_is_left(functions):
    code = (
        "from benchmarks.alone import run_alone; from alone_functions import sleep; "
        "run_alone('it', sleep)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE
    )
    assert parent.stderr.readline() == b"begun\n"
    parent.kill()
    # Which ends when the last process has ended that has it, too.
    _, left = parent.communicate(timeout=20)
    assert left == b""


@pytest.fixture
def checkout(tmp_path):
    for name, text in CHECKOUT.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text)
    return tmp_path


def prepare(checkout, name, **setting):
    return calls.prepare(f"{checkout}:{name}", Setting(**setting), 3, 16)


def test_a_call_is_made_by_the_other_code(checkout):
    model = prepare(checkout, "earlier", mode="inference")
    assert (model.parameters, model.steps) == (48, 1)
    model.attempt()
    model.attempt()
    model.close()
    assert (checkout / "calls").read_text() == "earlier inference\n" * 2


def test_what_the_other_code_does_not_know_is_an_error(checkout):
    with pytest.raises(UserError, match=f"{checkout}:.* --models: expected another"):
        prepare(checkout, "unknown")
    with pytest.raises(UserError, match=f"{checkout}:any at .*'causal'"):
        prepare(checkout, "any", causal=True)


def test_a_model_whose_process_has_ended_is_called_no_more(checkout):
    model = prepare(checkout, "mortal")
    model.attempt()
    said = f"{checkout}:mortal at 16 tokens: its process ended with code 1"
    assert model.not_run == said
    model.attempt()
    assert model.not_run == said


def test_names_of_no_checkout_are_refused(tmp_path):
    with pytest.raises(UserError, match=f"--models: {tmp_path}:x: expected a checkout"):
        list(speed.measure([f"{tmp_path}:x"], [16]))


def test_another_checkout_takes_turns_with_this_one(checkout, monkeypatch):
    monkeypatch.setattr(models, "variant_config", shallow_variant)
    there = f"{checkout}:{NAME}"
    seconds = {there: [8.0], NAME: [2.0], speed.PEAK: [1.0]}
    made_up(monkeypatch, speed, seconds.__getitem__)
    monkeypatch.setattr(speed, "PEAK_SIZE", 256)
    row, here = speed.measure([there, NAME], [16], 48, 1, mode="inference")
    # Its calls make four updates each.
    assert (row["model"], row["seconds"], row["ratio_to_here"]) == (there, 2.0, 1.0)
    assert row["parameters"] == 48 and "gflop" not in row
    assert "ratio_to_here" not in here
    # As each is called once before it is timed.
    assert (checkout / "calls").read_text() == f"{NAME} inference\n" * 2


@pytest.mark.slow
@pytest.mark.long
def test_this_checkout_is_another_one_too():
    model = calls.prepare(f"{ROOT}:{NAME}", Setting(mode="inference"), 1, 16)
    model.attempt()
    model.close()
    assert model.not_run is None
    assert model.parameters == models.build(NAME, "small").count_params()


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A function that writes a library in the place of PyTorch, with one more line."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def write(line=""):
        (tmp_path / "torch.py").write_text(f"{TORCH}\n{line}\n")
        return tmp_path

    return write


def test_tensorflow_is_not_imported_beside_pytorch(library):
    library()
    model = calls.prepare(models.PYTORCH, Setting(), 1, 16)
    model.attempt()
    model.close()
    assert model.not_run is None


def test_a_library_that_cannot_be_imported_says_so(library):
    library("import tensorflow_that_is_not_there")
    model = calls.prepare(models.PYTORCH, Setting(), 1, 16)
    assert model.not_run == (
        "pytorch at 16 tokens: ModuleNotFoundError: No module named "
        "'tensorflow_that_is_not_there'"
    )


def test_memory_that_runs_out_in_a_step_is_said(library):
    library("torch.optim.Adam.return_value.step.side_effect = MemoryError('no 5 GB')")
    model = calls.prepare(models.PYTORCH, Setting(), 1, 16)
    assert model.not_run is None
    model.attempt()
    assert model.not_run == "pytorch at 16 tokens: MemoryError: no 5 GB"


@pytest.mark.slow
@pytest.mark.script
@pytest.mark.long
def test_the_rest_is_measured_and_the_command_fails(library):
    folder = library("os.kill(os.getpid(), signal.SIGSEGV)")
    (folder / "out").mkdir()
    flags = ["--models=pytorch,transformer", "--lengths=16", "--mode=inference"]
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
    assert lost["not_run"] == reason and measured["model"] == "transformer"
    assert "seconds" in measured and "not_run" not in measured
    said = (folder / "out/stderr").read_text().splitlines()[-1]
    assert said == f"error: 1 of 2 rows have no figures; the first says: {reason}"
    assert process.exitcode == 1
