"""benchmark.py speed where JAX trains."""

import json

import pytest

from tests.conftest import ROOT
from tests.scripts import script

pytestmark = [pytest.mark.slow, pytest.mark.script]
pytest.importorskip("jax")


@pytest.mark.parametrize(
    "mode, task",
    [
        ("inference", "classification"),
        pytest.param("inference", "translation", marks=pytest.mark.long),
        pytest.param("train", "classification", marks=pytest.mark.long),
    ],
)
def test_a_row_has_its_seconds(mode, task):
    result = script(
        "tests/benchmarks/small.py",
        "speed",
        "--models=transevolve-randomff-1",
        "--lengths=8",
        "--tokens_per_batch=16",
        f"--mode={mode}",
        f"--task={task}",
        KERAS_BACKEND="jax",
        PYTHONPATH=str(ROOT),
    )
    assert result.returncode == 0, result.stderr
    (row,) = map(json.loads, result.stdout.splitlines())
    assert row["mode"] == mode and "seconds" in row
    assert "gflop" not in row and "peak_share" not in row
