"""What is left of a process when the one that made it is killed: nothing."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

CALLS = {
    "benchmarks.alone.run_alone": "run_alone('it', sleep)",
    "reproduction.running.in_own_process": "in_own_process(sleep)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_no_orphan_is_left(name):
    module, function = name.rsplit(".", 1)
    code = (
        f"from {module} import {function}; from tests.common.sleeper import sleep; "
        + CALLS[name]
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert parent.stdout.readline() == b"begun\n"
    parent.kill()
    # Which ends when the last process has ended that has it, too.
    left, _ = parent.communicate(timeout=20)
    assert left == b""
