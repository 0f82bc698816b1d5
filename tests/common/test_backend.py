"""An environment that training cannot use is refused in one line."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.scripts import last_line, script

pytestmark = pytest.mark.script

ENVIRONMENTS = {
    "error: KERAS_BACKEND: expected tensorflow or jax, found torch; set": {
        "KERAS_BACKEND": "torch"
    },
    "error: TF_USE_LEGACY_KERAS: expected Keras 3, found True; set": {
        "TF_USE_LEGACY_KERAS": "True"
    },
    "error: expected a locale with UTF-8, found ascii; set PYTHONUTF8=1": {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    },
}


@pytest.mark.parametrize("message", ENVIRONMENTS)
def test_a_script_says_what_to_set(message):
    for name in ("train", "evaluate", "export", "benchmark", "reproduce"):
        result = script(f"{name}.py", **ENVIRONMENTS[message])
        assert last_line(result) == result.stderr.strip()
        assert last_line(result).startswith(message)


@pytest.mark.parametrize("message", ENVIRONMENTS)
def test_python_says_what_to_set(message):
    for module in (
        "evaluation.run import load_run",
        "training.train import train_and_evaluate",
    ):
        result = subprocess.run(
            [sys.executable, "-c", f"from {module}"],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENTS[message]},
            capture_output=True,
            text=True,
        )
        *_, line = result.stderr.strip().splitlines()
        error, _, said = line.partition(": ")
        assert error.endswith("UserError")
        assert f"error: {said}".startswith(message)
