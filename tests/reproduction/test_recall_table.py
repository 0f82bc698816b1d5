"""The table of recall: trainings by what is kept of a text."""

import pytest

from reproduction import recall as trainings
from reproduction import running
from reproduction.experiment import Folder
from reproduction.results import Results
from reproduction.scales import SCALES
from reproduction.tables import recall

SETTINGS = {**SCALES["smoke"].recall, "pairs": {16: 2, 32: 4}, "widths": (4, 6)}
SCALE = SCALES["laptop"]._replace(recall=SETTINGS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What a table was made in, whose accuracy is a hundredth of width and length."""

    def train(model, rate, length, *_):
        yield (length + model.hidden_dim) / 100

    monkeypatch.setattr(trainings, "train", train)
    monkeypatch.setattr(
        running, "in_own_process", lambda call, *others: call(*others) or 0
    )
    folder = Folder(tmp_path, "laptop", None)
    assert running.do_all(recall.jobs(SCALE, folder.results), lambda: None) == []
    return folder


def test_each_variant_has_a_row_for_each_length_and_width(folder):
    (sheet,) = recall.sheets(SCALE, Results({}, folder))
    rows = {
        (row["model"], row["attention"], row["length"], row["width"]): row
        for row in sheet.rows
    }
    assert len(rows) == len(sheet.rows) == 2 * 2 * 2 * 2
    row = rows["transevolve-fullff-1", "linear", 32, 6]
    assert row["accuracy"] == pytest.approx(0.38) and row["pairs"] == 4
    assert row["kib"] == row["state_bytes"] / 1024
    (picture,) = sheet.pictures
    assert "transformer softmax 0.38" in picture.alternative
    assert (folder.results / picture.file).stat().st_size > 10_000


def test_what_was_not_trained_is_said(folder, tmp_path):
    (folder.results / "recall/transformer-linear-16-2-4.json").unlink()
    (sheet,) = recall.sheets(SCALE, Results({}, folder))
    assert "1 trainings have not been done." in sheet.notes
    nothing = Results({}, Folder(tmp_path / "empty", "laptop", None))
    (sheet,) = recall.sheets(SCALE, nothing)
    assert not sheet.rows and not sheet.pictures


def test_every_scale_has_sequences_that_can_be_drawn():
    for scale in SCALES.values():
        half = scale.recall["training"]["vocabulary_size"] // 2
        for length, pairs in scale.recall["pairs"].items():
            assert pairs <= (length - 2 * pairs) // 2 and pairs < half
