"""The choice of a learning rate by validation data; nobody trains here."""

import pytest

from reproduction import tables
from reproduction.records import FAILED
from reproduction.scales import SCALES
from reproduction.tuning import FIELD, tune
from tests.reproduction.made_runs import results_of, rows, run_of

LAPTOP = SCALES["laptop"]
LISTOPS = LAPTOP.tasks["listops"]._replace(seeds=3)
SCALE = LAPTOP._replace(tasks={**LAPTOP.tasks, "listops": LISTOPS}, tunes=True)
MODEL = "transformer"
OWN = LISTOPS._replace(variant=MODEL).make_config({}).train.learning_rate_max
RATES = (OWN / 2, OWN, 2 * OWN)


def trial(rate, accuracy, seed=0, test=0.5):
    choice = "" if rate == OWN else f"lr-{rate:g}"
    one = LISTOPS._replace(variant=MODEL, choice=choice, seed=seed)
    result = {"accuracy": test, "parameters": 3, "loss": 1.0, "examples": 20}
    validations = [{"step": 1, "accuracy": accuracy - 0.1}, {"accuracy": accuracy}]
    one = one.changed({FIELD: rate} if choice else {})
    return run_of(one, {"test": result}, validations=validations, training=1)


def tuned(records, folder):
    return tune(SCALE, LISTOPS, MODEL, results_of(records, folder))


def test_each_rate_has_a_trial_first(tmp_path):
    for records in ([], [trial(0.1, 0.3), trial(0.4, 0.9)]):
        tuning = tuned(records, tmp_path)
        rates = [one.make_config({}).train.learning_rate_max for one in tuning.runs]
        assert rates == [*RATES]
        assert {one.seed for one in tuning.runs} == {0}
        # Till then the row is what it is without tuning.
        assert tuning.rate is None
        assert tuning.filling == tune(LAPTOP, LISTOPS, MODEL, None).runs


def test_the_best_rate_on_validation_data_gets_the_other_seeds(tmp_path):
    records = [trial(0.1, 0.3, test=0.9), trial(0.2, 0.8), trial(0.4, 0.5)]
    tuning = tuned(records, tmp_path)
    assert tuning.rate == 0.2 and tuning.scores == {0.1: 0.3, 0.2: 0.8, 0.4: 0.5}
    assert tuning.runs == tuning.filling
    assert [one.seed for one in tuning.runs] == [0, 1, 2]
    assert {one.make_config({}).train.learning_rate_max for one in tuning.runs} == {0.2}
    assert tuning.runs[0].name == records[1].name


def test_a_trial_that_failed_is_not_chosen(tmp_path):
    diverged = trial(0.4, 0.9)._replace(failure="the loss is not finite")
    assert diverged.state == FAILED
    assert tuned([trial(0.1, 0.3), diverged], tmp_path).rate is None
    tuning = tuned([trial(0.1, 0.3), trial(0.2, 0.2), diverged], tmp_path)
    assert tuning.rate == 0.1


def test_a_plan_has_all_runs():
    names = [one.name for one in tune(SCALE, LISTOPS, MODEL, None).runs]
    assert len(names) == len(set(names)) == len(RATES) + 2


def test_a_row_states_its_rate_and_leaves_other_trials_out(tmp_path):
    records = [trial(0.1, 0.3), trial(0.2, 0.8, test=0.6), trial(0.4, 0.5)]
    records.append(trial(0.2, 0.7, seed=1, test=0.7))
    results = results_of(records, tmp_path)
    sheet, _ = tables.TABLES["4"].sheets(SCALE, results)
    (row,) = rows(sheet, task="listops", model=MODEL)
    assert (row["runs"], row["rate"]) == (2, 0.2)
    assert row["accuracy"] == pytest.approx(65)
    assert row["rates"] == "0.1: 30.0, 0.2: 80.0, 0.4: 50.0"
    assert any("validation data" in note for note in sheet.notes)
    experiments = tables.experiments(["4"], SCALE, results)
    of_model = [x for x in experiments if (x.task, x.variant) == ("listops", MODEL)]
    assert [one.seed for one in of_model] == [0, 1, 2]


def test_seeds_that_are_asked_for_replace_a_task_s_own():
    scale = SCALE.with_seeds(2)
    runs = tune(scale, scale.tasks["listops"], MODEL, None).runs
    assert {one.seed for one in runs} == {0, 1}
