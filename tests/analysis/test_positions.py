"""Perplexity by the place of a token, against the losses of a pass over the text."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from analysis.positions import by_position, draw
from common.errors import UserError
from evaluation.run import load_run
from reporting.palette import look
from tests import plain_text, runs, scripts

pytestmark = pytest.mark.slow
LINEAR = {"variant": "transevolve-fullff-1-linear", "model.positions": "none"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return plain_text.write(tmp_path_factory.mktemp("text"))


def open_run(folder, workdir, **changes):
    config = plain_text.config(folder, **{**LINEAR, **changes})
    return load_run(runs.untrained(config, workdir))


def test_each_token_counts_at_its_place(folder, tmp_path):
    """A memory sees the whole text, as one pass does."""
    run = open_run(folder, tmp_path / "run", **{"data.memory": True})
    tokens = run.task.data.text("test").tokens.astype(int)
    end = run.tokenizer.end
    logits = np.float64(run.model(np.insert(tokens[:-1], 0, end)[None])[0])
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    losses, place = {}, 0
    for token, log_probs in zip(tokens, logits, strict=True):
        place += 1
        losses.setdefault(place, []).append(-log_probs[token])
        if token == end:
            place = 0
    rows = by_position(run)
    assert [row["length"] for row in rows] == [1, 2, 4, 8, 16]
    for row, places in zip(rows, ((1,), (2,), (3, 4), range(5, 9), (9,)), strict=True):
        expected = [loss for place in places for loss in losses[place]]
        assert row["tokens"] == len(expected)
        assert row["perplexity"] == pytest.approx(np.exp(np.mean(expected)), rel=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"data.documents": "apart"},
        pytest.param(
            {"decode.sliding_window": True, "model.adaptive_cutoffs": (5,)},
            marks=pytest.mark.long,
        ),
    ],
)
def test_all_places_together_are_the_evaluation(folder, tmp_path, changes):
    run = open_run(folder, tmp_path / "run", **changes)
    rows = by_position(run)
    scores = run.task.evaluate(run.model, "test", run.strategy).scores
    loss = sum(row["tokens"] * np.log(row["perplexity"]) for row in rows)
    assert sum(row["tokens"] for row in rows) == scores["tokens"]
    assert loss / scores["tokens"] == pytest.approx(scores["loss"], rel=1e-5)


def test_a_line_is_drawn_for_each_run(folder, tmp_path):
    cut = open_run(folder, tmp_path / "cut")
    carried = open_run(folder, tmp_path / "carried", **{"data.memory": True})
    table = draw([cut, carried], tmp_path / "positions.png")
    picture = imread(tmp_path / "positions.png")[..., :3]
    for name in ("transevolve-fullff-1-linear", "transevolve-fullff-1-linear, memory"):
        is_drawn = np.abs(picture - to_rgb(look(name).color)).max(axis=-1) < 0.02
        assert is_drawn.sum() > 20
    header, _, first, *more = table.splitlines()
    assert header.endswith("transevolve-fullff-1-linear, memory |") and len(more) == 4
    assert first.split(" | ")[1] == "20"
    with pytest.raises(UserError, match="cut: expected one run of transevolve"):
        draw([carried, cut, cut], tmp_path / "positions.png")
    other = open_run(folder, tmp_path / "bytes", **{"data.tokenizer": "bytes"})
    with pytest.raises(UserError, match="bytes: expected the test data and the toke"):
        draw([cut, other], tmp_path / "positions.png")


@pytest.mark.script
def test_runs_are_named_by_a_flag_each(folder, tmp_path):
    open_run(folder, tmp_path / "cut")
    workdir = f"--workdir={tmp_path}/cut"
    result = scripts.script("reproduce.py", "--figure=positions", workdir)
    assert result.stdout.splitlines()[-1] == f"{tmp_path}/cut/positions.png"
    result = scripts.script("reproduce.py", "--figure=drift", workdir, workdir)
    assert "--workdir: expected one beside --figure=drift" in result.stderr
    result = scripts.script("reproduce.py", "--figure=losses", workdir)
    assert f"{workdir}: expected validations, found none" in result.stderr


def test_another_task_has_no_places(tmp_path):
    config = scripts.listops_config(tmp_path / "cache", "transformer")
    run = load_run(runs.untrained(config, tmp_path / "run"))
    with pytest.raises(UserError, match="expected a language model, found listops"):
        by_position(run)
