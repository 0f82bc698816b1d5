"""Processes and threads: how long they may take, and what is left of them: nothing."""

import signal
import subprocess
import sys
import time

import pytest

from common.processes import ending, within
from tests.conftest import ROOT


def test_what_takes_longer_is_left_behind():
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        within(0.1, lambda: time.sleep(2))
    assert time.monotonic() - start < 1.5
    assert within(60, lambda: "done") == "done"
    with pytest.raises(KeyError, match="a mistake"):
        within(60, lambda: {}["a mistake"])


@pytest.mark.parametrize(
    "code, said",
    [
        (3, "its process ended with code 3"),
        (-signal.SIGTERM, "its process was ended by SIGTERM"),
        (-40, "its process was ended by signal 40"),
    ],
)
def test_how_a_process_ended_is_said(code, said):
    assert ending(code) == said


def test_a_process_ends_with_the_one_that_made_it():
    code = (
        "import multiprocessing; from tests.common.sleeper import sleep; "
        "process = multiprocessing.get_context('spawn').Process(target=sleep); "
        "process.start(); process.join()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert parent.stdout.readline() == b"begun\n"
    parent.kill()
    # Which ends when the last process has ended that has it, too.
    left, _ = parent.communicate(timeout=20)
    assert left == b""
