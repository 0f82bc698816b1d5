"""The newcomer's comparison, at a scale for tests."""

import json
import runpy
import sys

import numpy as np
import pytest

from benchmarks.updates import task_updates
from configs.published import ACCURACY
from data.tokenizers import make_tokenizer
from models import variants
from reproduction import short_listops
from reproduction.experiment import Experiment, Folder
from tasks import TASKS
from tests import forked
from tests.conftest import ROOT
from training import workdir as workdirs

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


@pytest.fixture
def compare(tmp_path, monkeypatch):
    """A function that compares tiny models; the lines of its table, and the rest."""
    tiny = Shallow("listops", "listops", "laptop", TINY)
    monkeypatch.setattr(short_listops, "LISTOPS", tiny)
    monkeypatch.setattr(
        short_listops, "interleave", lambda calls, *_: dict.fromkeys(calls, [1])
    )

    def compare():
        report, learned = short_listops.compare(tmp_path, list(COMPARED)[:1])
        lines = [line for line in report.splitlines() if line.startswith("| ")]
        return [line.strip("| ").split(" | ") for line in lines[2:]], report, learned

    return compare


@pytest.mark.parametrize("accuracy, learned", [(0.95, True), (0.05, False)])
def test_runs_of_before_are_compared(tmp_path, compare, accuracy, learned):
    folder, parameters = Folder(tmp_path, "comparison"), 1234567
    for variant in COMPARED:
        one = short_listops.LISTOPS._replace(variant=variant)
        workdir, config = folder.workdir(one), folder.config(one)
        (workdir / "results").mkdir(parents=True)
        tokenizer = make_tokenizer(config.data)
        workdirs.keep(config, tokenizer, {"training": 1, "validation": 1}, workdir)
        result = {"accuracy": accuracy, "loss": 1.0, "parameters": parameters}
        (workdir / "results/test.json").write_text(json.dumps(result))
        facts = {"finished": True, "device": "1 CPU"}
        (workdir / "facts.json").write_text(json.dumps(facts))
    rows, report, has_learned = compare()
    for variant, row in zip(COMPARED, rows, strict=True):
        published = str(ACCURACY["listops"][variant])
        shown = f"{100 * accuracy:.1f}"
        assert row == [variant, "1,234,567", shown, "1.00", published]
    assert "Short ListOps" in report and "train_examples 16000 (96000)" in report
    assert f"{2 * learned} of 2 models are at least 10 points above" in report
    assert has_learned == learned


@pytest.mark.long
def test_models_are_trained_once(tmp_path, compare):
    rows, _, learned = compare()
    assert not learned  # nothing can, in one epoch of 200
    runs = tmp_path / "runs/comparison/listops"
    for variant, row in zip(COMPARED, rows, strict=True):
        path = runs / variant / "seed-0/results/test.json"
        result = json.loads(path.read_text())
        assert row[1] == f"{result['parameters']:,}"
        assert row[2] == f"{100 * result['accuracy']:.1f}"
        assert result["examples"] == 50
    before = {path: path.stat().st_mtime for path in runs.rglob("*.jsonl")}
    again, _, _ = compare()
    assert again == rows
    assert before == {path: path.stat().st_mtime for path in runs.rglob("*.jsonl")}


def test_a_training_step_is_what_is_timed(tmp_path):
    config = Folder(tmp_path, "comparison").config(
        Shallow("listops", "listops", "laptop", TINY, variant="transformer")
    )
    kind = TASKS[config.kind]
    step = task_updates(kind(config, make_tokenizer(config.data)), 1)
    assert np.isfinite(step().loss)


def run_script(folder, learned):
    """Runs reproduce.py on a comparison of these outcomes; what it exits with."""
    short_listops.compare = lambda *arguments: ("# A report", learned)
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
