"""Losses against time: seconds of an update, times the updates before a validation."""

import json

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from common.errors import UserError
from evaluation.run import load_run
from reporting.palette import look
from reproduction import losses
from tests import plain_text, runs

pytestmark = pytest.mark.slow
VALIDATIONS = [(10, 3.0), (20, 2.5), (20, 2.0)]  # the last one was repeated


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return plain_text.write(tmp_path_factory.mktemp("text"))


def open_run(folder, workdir, validations=VALIDATIONS, **changes):
    config = plain_text.config(folder, **changes)
    runs.untrained(config, workdir)
    with (workdir / "metrics.jsonl").open("w") as file:
        for step, loss in validations:
            row = {"step": step, "split": "validation", "loss": loss}
            file.write(json.dumps(row) + "\n")
    return load_run(workdir)


def two_runs(folder, tmp_path):
    longer = [*VALIDATIONS, (40, 1.0)]
    return [
        open_run(folder, tmp_path / "transevolve"),
        open_run(folder, tmp_path / "other", longer, variant="transformer"),
    ]


def test_minutes_are_updates_times_the_median_seconds_of_one(
    folder, tmp_path, monkeypatch
):
    seconds = iter([[12.0, 24.0, 1000.0], [48.0, 48.0, 48.0]])  # of 4 updates
    monkeypatch.setattr(
        losses, "interleave", lambda calls, *_: {name: next(seconds) for name in calls}
    )
    table = losses.draw(two_runs(folder, tmp_path), tmp_path / "losses.png")
    assert table.splitlines()[2:] == [
        "| transevolve-fullff-1 | 2.0 | 2.000 | 2.000 |",
        "| transformer | 8.0 | 1.000 | 3.000 |",
    ]
    assert "| loss at 2.0 minutes |" in table
    picture = imread(tmp_path / "losses.png")[..., :3]
    for name in ("transevolve-fullff-1", "transformer"):
        is_drawn = np.abs(picture - to_rgb(look(name).color)).max(axis=-1) < 0.02
        assert is_drawn.sum() > 20


def test_updates_are_timed_on_batches_of_the_run(folder, tmp_path):
    run = open_run(folder, tmp_path / "run", variant="transformer")
    ((first, _), (second, loss)) = losses.against_time([run])["transformer"]
    assert second == pytest.approx(2 * first) and first > 0 and loss == 2.0


def test_a_run_without_validations_or_of_other_data_is_named(folder, tmp_path):
    run = open_run(folder, tmp_path / "run")
    empty = open_run(folder, tmp_path / "empty", [], variant="transformer")
    with pytest.raises(UserError, match="empty: expected validations, found none"):
        losses.against_time([run, empty])
    bare = open_run(folder, tmp_path / "bare", [(20, None)], variant="transformer")
    with pytest.raises(UserError, match="bare: expected a loss of each validation"):
        losses.against_time([run, bare])
    other = open_run(
        folder, tmp_path / "bytes", variant="transformer", **{"data.tokenizer": "bytes"}
    )
    with pytest.raises(UserError, match="bytes: expected the validation data and the"):
        losses.against_time([run, other])
