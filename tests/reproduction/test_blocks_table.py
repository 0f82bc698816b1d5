"""What the table of blocks and steps makes of runs; nobody trains here."""

import pytest

from models import build_classifier
from reproduction.scales import SCALES
from reproduction.scores import NOT_RUN
from reproduction.tables import blocks
from tests.models.builders import count_parameters
from tests.reproduction.made_runs import experiments_of, results_of, rows, run_of

LAPTOP = SCALES["laptop"]


@pytest.mark.parametrize("task", blocks.TASKS)
@pytest.mark.parametrize("scale", ["paper", "laptop"])
def test_models_have_as_many_parameters(scale, task):
    counts = []
    for one in experiments_of(blocks, SCALES[scale]):
        if one.task == task and one.seed == 0:
            model = one.make_config({}).model
            assert model.num_blocks * model.num_depths == 6
            counts.append(count_parameters(build_classifier, model, 20, 10))
    assert len(counts) == len(blocks.SETTINGS)
    assert max(counts) < 1.005 * min(counts)


def test_gains_are_of_pairs_with_one_seed(tmp_path):
    noise = (0.02, 0.0, -0.02)

    def tested(one, accuracy):
        test = {"accuracy": accuracy + noise[one.seed], "examples": 2000}
        return run_of(one, {"test": test})

    accuracies = {"": 0.45, "6-blocks": 0.49, "rk2": 0.45}
    ran = [
        tested(one, accuracies[one.choice])
        for one in experiments_of(blocks, LAPTOP)
        if one.task == "listops" and one.choice in accuracies
    ]
    of_rk2 = next(one for one in ran if "rk2/seed-2" in one.name)
    of_rk2.results["test"]["accuracy"] += 0.05
    (sheet,) = blocks.sheets(LAPTOP, results_of(ran, tmp_path))
    (first,) = rows(sheet, task="listops", blocks=1, step="euler")
    assert (first["gain"], first["badge"], first["runs"]) == (None, "", 3)
    assert first["accuracy"] == pytest.approx(45.0)
    assert first["accuracy_deviation"] == pytest.approx(2.0)
    (six,) = rows(sheet, task="listops", blocks=6)
    # The noise of seeds is not in the difference, which rounding alone makes uneven.
    assert six["gain"] == pytest.approx(4.0)
    assert six["gain_deviation"] == pytest.approx(0, abs=1e-9)
    assert six["badge"] == "not clear"
    (midpoint,) = rows(sheet, task="listops", step="rk2")
    assert midpoint["gain"] == pytest.approx(5 / 3)
    assert midpoint["badge"] == "not clear"
    (absent,) = rows(sheet, task="imdb", step="rk4")
    assert (absent["badge"], absent["runs"]) == (NOT_RUN, 0)
