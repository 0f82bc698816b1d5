"""The main job, at a scale for tests."""

import json

import pytest

from configs import listops
from configs.published import ACCURACY
from models import variants
from reproduction import laptop
from tests.shallow import shallow_variant
from training.lock import LockedError

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
# The second is always there.
COMPARED = ("transevolve-randomff-2", "transformer")


def test_reproduce(tmp_path, monkeypatch):
    scale = {**listops.PRESETS["laptop"], **TINY}
    monkeypatch.setitem(listops.PRESETS, "laptop", scale)
    monkeypatch.setattr(listops, "variant_config", shallow_variant)
    monkeypatch.setattr(laptop, "TIMED_ROUNDS", 3)
    monkeypatch.setattr(laptop, "UPDATES_PER_ROUND", 2)
    # Two stand for five: the others differ in nothing that is done here.
    report, learned = laptop.reproduce(tmp_path, COMPARED[:1])
    rows = [line.split(" | ") for line in report.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(COMPARED)
    for cells in rows[2:]:
        variant = cells[0].removeprefix("| ")
        result = json.loads((tmp_path / variant / "results/test.json").read_text())
        assert cells[1] == f"{result['parameters']:,}"
        assert cells[2] == f"{100 * result['accuracy']:.1f}"
        assert float(cells[3]) > 0
        assert cells[4] == f"{ACCURACY['listops'][variant]} |"
        assert result["examples"] == 50
    assert "Laptop scale" in report and "train_examples 200 (96000)" in report
    assert not learned  # nothing can, in one epoch of 200

    def unexpected(*arguments):
        raise AssertionError("done again")

    for name in ("train_and_evaluate", "evaluate"):
        monkeypatch.setattr(laptop, name, unexpected)
    # Speeds are measured each time.
    monkeypatch.setattr(
        laptop, "interleave", lambda calls, *_: {name: [1.0] for name in calls}
    )
    again, _ = laptop.reproduce(tmp_path, COMPARED[:1])
    assert "| 1.00 |" in again
    for before, after in zip(report.splitlines(), again.splitlines(), strict=True):
        assert before.split(" | ")[:3] == after.split(" | ")[:3]


def test_what_another_process_trains_is_waited_for(tmp_path, monkeypatch):
    tried = []

    def train(config, workdir):
        tried.append(workdir.name)
        if tried == ["a"]:
            raise LockedError("--workdir=a: expected none that another writes to")
        return config

    monkeypatch.setattr(laptop, "_train", train)
    monkeypatch.setattr(laptop, "SECONDS_BETWEEN_LOOKS", 0)
    results = laptop._train_all({"a": 1, "b": 2}, tmp_path)
    assert tried == ["a", "b", "a"]
    assert list(results.items()) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("task", ACCURACY)
def test_every_variant_has_a_published_number(task):
    assert set(ACCURACY[task]) == set(variants(in_paper=True))
