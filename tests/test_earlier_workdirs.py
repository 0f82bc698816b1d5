"""Workdirs of an earlier version of this repository, with the scores that it printed.

`golden/workdirs.tar.xz` holds two, which commit bc97145 trained, before attention was
rebuilt: a randomFF-2 on short ListOps, and a fullFF-1 with linear attention on pairs
of numbers, which lie beside it.
"""

import json
import tarfile

import pytest

from evaluation.evaluate import evaluate
from evaluation.run import load_run
from tests.scripts import ROOT
from training import workdir as workdirs
from training.train import train_and_evaluate


@pytest.fixture
def workdirs_of_before(tmp_path, monkeypatch):
    with tarfile.open(ROOT / "tests/golden/workdirs.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    # Their configs name data and cache beside them.
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["listops", "multi30k"])
def test_scores_are_as_before(workdirs_of_before, name):
    workdir = workdirs_of_before / name
    before = json.loads((workdir / "results/test.json").read_text())
    result, _ = evaluate(workdir)
    assert "loss" in before or "bleu_13a" in before
    for score in before.keys() & {"loss", "accuracy", "bleu_13a", "chrf", "parameters"}:
        assert result[score] == pytest.approx(before[score], rel=1e-5)


def test_translations_and_their_scores_are_as_before(workdirs_of_before):
    run = load_run(workdirs_of_before / "multi30k")
    translations = run.predict(["one two three", "six five"])
    assert [one.text for one in translations] == ["eins zwei", "fünf sechs"]
    scores = [one.score for one in translations]
    assert scores == pytest.approx([-1.2592, -1.1897], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["listops", "multi30k"])
def test_training_goes_on(workdirs_of_before, name):
    workdir = workdirs_of_before / name
    config = workdirs.read_config(workdir)
    if config.train.get("steps"):
        config.train.steps += 10
    else:
        config.train.epochs += 1
    lines = (workdir / "metrics.jsonl").read_text()
    trained = train_and_evaluate(config, workdir)
    assert trained["step"] == {"listops": 30, "multi30k": 210}[name]
    assert (workdir / "metrics.jsonl").read_text().startswith(lines)
