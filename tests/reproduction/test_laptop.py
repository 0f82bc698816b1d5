"""The newcomer's comparison, at a scale for tests."""

import json
import runpy
import sys

import pytest

from configs.published import ACCURACY
from models import variants
from reproduction import laptop
from reproduction.experiment import Experiment
from tests import forked
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

TINY = {
    "data.train_examples": 200,
    "data.validation_examples": 40,
    "data.test_examples": 50,
    "data.max_length": 16,
    "data.bucket_lengths": (16,),
    "data.max_depth": 3,
    "model.hidden_dim": 16,
    "model.ffn_dim": 32,
    "train.epochs": 1,
}
# Two stand for five: the others differ in nothing that is done here. The second is
# always there. Both are shallow: layers are traced one by one, which takes time.
COMPARED = {
    "transevolve-randomff-2": {"model.num_depths": 2},
    "transformer": {"model.num_layers": 2},
}


class Shallow(Experiment):
    """As the comparison's, with few layers."""

    def make_config(self, data):
        return Experiment.make_config(self.changed(COMPARED[self.variant]), data)


def test_compare(tmp_path, monkeypatch):
    tiny = Shallow("listops", "listops", "laptop", TINY)
    monkeypatch.setattr(laptop, "LISTOPS", tiny)
    monkeypatch.setattr(laptop, "TIMED_ROUNDS", 3)
    monkeypatch.setattr(laptop, "UPDATES_PER_ROUND", 2)
    names = list(COMPARED)[:1]
    report, learned = laptop.compare(tmp_path, names)
    rows = [line.split(" | ") for line in report.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(COMPARED)
    runs = tmp_path / "runs/comparison/listops"
    for cells in rows[2:]:
        variant = cells[0].removeprefix("| ")
        path = runs / variant / "seed-0/results/test.json"
        result = json.loads(path.read_text())
        assert cells[1] == f"{result['parameters']:,}"
        assert cells[2] == f"{100 * result['accuracy']:.1f}"
        assert float(cells[3]) > 0
        assert cells[4] == f"{ACCURACY['listops'][variant]} |"
        assert result["examples"] == 50
    assert "Laptop scale" in report and "train_examples 16000 (96000)" in report
    assert not learned  # nothing can, in one epoch of 200

    before = {path: path.stat().st_mtime for path in runs.rglob("*.jsonl")}
    # Speeds are measured each time.
    monkeypatch.setattr(
        laptop, "interleave", lambda calls, *_: {name: [1.0] for name in calls}
    )
    again, _ = laptop.compare(tmp_path, names)
    assert "| 1.00 |" in again
    for first, second in zip(report.splitlines(), again.splitlines(), strict=True):
        assert first.split(" | ")[:3] == second.split(" | ")[:3]
    assert before == {path: path.stat().st_mtime for path in runs.rglob("*.jsonl")}


def run_script(folder, learned):
    """Runs reproduce.py on a comparison of these outcomes; what it exits with."""
    laptop.compare = lambda *arguments: ("# A report", learned)
    sys.argv = ["reproduce.py", f"--output={folder}"]
    try:
        runpy.run_path(str(ROOT / "reproduce.py"), run_name="__main__")
    except SystemExit as end:
        return end.code


@pytest.mark.script
@pytest.mark.parametrize("learned", [True, False])
def test_the_script_writes_the_report_and_fails_if_a_model_does(tmp_path, learned):
    code = forked.call(run_script, tmp_path, learned)
    assert (tmp_path / "report.md").read_text() == "# A report\n"
    expected = "error: a model learned too little; see the table"
    assert code == (None if learned else expected)


@pytest.mark.parametrize("task", ACCURACY)
def test_every_variant_has_a_published_number(task):
    assert set(ACCURACY[task]) == set(variants(in_paper=True))
