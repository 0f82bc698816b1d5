"""The main job, at a scale for tests."""

import json

import pytest

from configs.common import VARIANTS
from reporting import reproduction
from reporting.published import ACCURACY
from reporting.tables import markdown_table

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


def test_reproduce(tmp_path, monkeypatch):
    scale = {**reproduction.LAPTOP_SCALE, **TINY}
    monkeypatch.setattr(reproduction, "LAPTOP_SCALE", scale)
    report, learned = reproduction.reproduce(tmp_path)
    rows = [line.split(" | ") for line in report.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(VARIANTS)
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
        monkeypatch.setattr(reproduction, name, unexpected)
    # Speeds are measured each time.
    monkeypatch.setattr(
        reproduction, "interleave", lambda calls, *_: {name: [1.0] for name in calls}
    )
    again, _ = reproduction.reproduce(tmp_path)
    assert "| 1.00 |" in again
    for before, after in zip(report.splitlines(), again.splitlines(), strict=True):
        assert before.split(" | ")[:3] == after.split(" | ")[:3]


@pytest.mark.parametrize("task", ACCURACY)
def test_every_variant_has_a_published_number(task):
    assert ACCURACY[task].keys() == VARIANTS.keys()


def test_markdown_table():
    assert (
        markdown_table(["a", "b"], [["x", 1]]) == "| a | b |\n| --- | --: |\n| x | 1 |"
    )
