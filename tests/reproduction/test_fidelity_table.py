"""What the fidelity table makes of runs; nobody trains here."""

import numpy as np
import pytest
from matplotlib.image import imread

from common.errors import UserError
from models.fidelity import CHOICES
from reproduction import tables
from reproduction.scales import SCALES
from reproduction.scores import NOT_RUN, Score, evidence
from tests.reproduction.made_runs import experiments_of, results_of, rows, run_of


def test_fidelities_are_compared_by_pairs(tmp_path):
    table = tables.TABLES["fidelity"]
    scale = SCALES["laptop"]
    experiments = experiments_of(table, scale)
    assert len(experiments) == 2 * 3 * (5 + 7)
    noise = (0.02, 0.0, -0.02)

    def validated(one, loss):
        loss += noise[one.seed] * (1.1 if one.choice == "official" else 1.0)
        row = {"loss": loss, "accuracy": 0.5}
        return run_of(
            one,
            {"test": {"bleu_13a": 30.0 + one.seed}},
            validations=[{"step": 1, "loss": 9.0, "accuracy": 0.1}, row],
        )

    losses = {"official": 2.0, "paper+depth_index": 2.5}
    found = [
        validated(one, losses.get(one.choice, 2.5))
        for one in experiments
        if one.config == "multi30k" and one.choice in ("", *losses)
    ]
    found[-1].validations[-1]["loss"] += 0.3  # of paper+depth_index, one seed
    (sheet,) = table.sheets(scale, results_of(found, tmp_path))
    same = {"task": "multi30k", "model": "transevolve-fullff-2"}
    (row,) = rows(sheet, fidelity="official", **same)
    assert row["validation"] == pytest.approx(2.0)
    # Pairs of one seed: the noise of seeds is not in the difference.
    assert row["validation_gain"] == pytest.approx(0.5)
    assert row["validation_gain_deviation"] == pytest.approx(
        0.1 * np.std(noise, ddof=1)
    )
    assert (row["badge"], row["test"], row["pairs"]) == ("clear", 31.0, 3)
    (row,) = rows(sheet, fidelity="paper", **same)
    assert row["validation_gain"] is None
    assert (row["runs"], row["pairs"]) == (3, None)
    (row,) = rows(
        sheet,
        task="multi30k",
        fidelity="paper+depth_index",
        model="transevolve-randomff-2",
    )
    assert row["badge"] == "not clear"
    (row,) = rows(sheet, fidelity="official", task="ag_news", model=same["model"])
    assert row["badge"] == NOT_RUN
    assert any("some 0.2 of the 4 comparisons" in note for note in sheet.notes)
    (picture,) = sheet.pictures
    assert imread(tmp_path / picture.file).std() > 0.01
    assert (
        "transevolve-fullff-2 on multi30k, nats of loss: from +0 with "
        "paper+depth_index to +0.5 with official." in picture.alternative
    )
    assert "ag_news" not in picture.alternative  # it has no runs
    choices = {"phase", "depth_index", "score_scale"}
    assert fidelities_of(sheet, same["model"]) == choices
    # Every one that there is, but for the one that changes no function.
    every = CHOICES.keys() - {"singular_values"}
    assert fidelities_of(sheet, "transevolve-randomff-2") == every


def fidelities_of(sheet, model):
    """The single choices that a model is run with."""
    found = {row["fidelity"] for row in rows(sheet, task="multi30k", model=model)}
    assert {"paper", "official"} < found
    return {fidelity.partition("+")[2] for fidelity in found - {"paper", "official"}}


def test_only_the_papers_fidelity_is_what_others_are_compared_with(tmp_path):
    """Not the first one that has run."""
    scale = SCALES["laptop"]
    table = tables.TABLES["fidelity"]
    found = [
        run_of(
            one,
            {"test": {"accuracy": 0.5}},
            validations=[
                {"step": 1, "accuracy": 0.5 + 0.1 * (one.choice == "official")}
            ],
        )
        for one in experiments_of(table, scale)
        if one.task == "ag_news" and one.choice
    ]
    (sheet,) = table.sheets(scale, results_of(found, tmp_path))
    (paper,) = rows(
        sheet, task="ag_news", model="transevolve-fullff-2", fidelity="paper"
    )
    assert paper["badge"] == NOT_RUN
    others = [row for row in rows(sheet, task="ag_news") if row["runs"]]
    assert len(others) == 4 + 6
    for row in others:
        assert row["badge"] == "not clear"
        assert row["validation_gain"] is row["validation_gain_deviation"] is None


def test_fidelity_is_of_transevolve():
    scale = SCALES["laptop"]._replace(variants={"transformer": {}})
    with pytest.raises(
        UserError, match="--variants: expected a variant of TransEvolve"
    ):
        tables.experiments(["fidelity"], scale)
    able = {"transevolve-fullff-1": {}, "transevolve-fullff-2": {}}
    scale = scale._replace(variants={"transformer": {}, **able})
    experiments = tables.experiments(["fidelity"], scale)
    assert {one.variant for one in experiments} == able.keys()


def test_a_difference_of_no_spread_is_not_clear():
    """Three pairs that differ alike differ by an example or so."""
    assert evidence(Score(0.01, 0.0, 3)) == "not clear"


@pytest.mark.parametrize(
    "count, standard_errors, clear",
    [(1, 9, False), (2, 12, False), (3, 4, False), (3, 5, True), (50, 2.3, True)],
)
def test_few_seeds_want_a_larger_difference(count, standard_errors, clear):
    deviation = 0.1 if count > 1 else None
    gain = Score(-standard_errors * 0.1 / count**0.5, deviation, count)
    assert evidence(gain) == ("clear" if clear else "not clear")
