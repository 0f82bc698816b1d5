"""What the table of IMDB's settings runs, and makes of it; nobody trains here."""

import pytest

from models import build_classifier
from reproduction.scales import SCALES
from reproduction.scores import NOT_RUN
from reproduction.tables import imdb
from tests.models.builders import count_parameters
from tests.reproduction.made_runs import experiments_of, results_of, rows, run_of

LAPTOP = SCALES["laptop"]


@pytest.mark.parametrize("scale", ["paper", "laptop"])
def test_each_differs_in_one_setting(scale):
    for variant in imdb.MODELS:
        configs = [
            one.make_config({}).model.to_dict()
            for one in experiments_of(imdb, SCALES[scale])
            if (one.variant, one.seed) == (variant, 0)
        ]
        first, *others = configs
        changed = [{k for k in first if x.get(k) != first[k]} for x in others]
        assert changed[-2:] == [{"dropout"}, {"positions"}]
        if variant == "transformer":
            assert changed[:2] == [{"norm"}, {"hidden_dim", "ffn_dim"}]
            assert others[1]["hidden_dim"] == {"paper": 512, "laptop": 256}[scale]
        else:
            assert changed[:2] == [{"fidelity"}] * 2
        for config in configs:
            assert count_parameters(build_classifier, config, 20, 2)


def test_gains_are_over_the_first_row_of_the_model(tmp_path):
    accuracies = {
        ("transevolve-randomff-1", ""): 0.7,
        ("transformer", ""): 0.8,
        ("transformer", "norm-post"): 0.75,
    }
    ran = [
        run_of(one, {"test": {"accuracy": accuracy + 0.01 * noise, "examples": 2000}})
        for one in experiments_of(imdb, LAPTOP)
        if (accuracy := accuracies.get((one.variant, one.choice)))
        for noise in [one.seed**2 if one.choice else one.seed]
    ]
    (sheet,) = imdb.sheets(LAPTOP, results_of(ran, tmp_path))
    first, *_ = rows(sheet, model="transformer")
    assert (first["gain"], first["badge"], first["runs"]) == (None, "", 3)
    (post,) = rows(sheet, model="transformer", setting="norm")
    assert post["gain"] == pytest.approx(-5 + 2 / 3)
    assert post["badge"] == "clear"
    (absent,) = rows(sheet, setting="fidelity")
    assert (absent["badge"], absent["runs"]) == (NOT_RUN, 0)
