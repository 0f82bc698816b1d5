"""Runs side by side, whatever they are."""

import json

import numpy as np
import pytest

from reproduction.comparison import comparison
from reproduction.differences import (
    ABSENT,
    group,
    in_words,
    settings,
    unusual_settings,
    usual_settings,
)
from reproduction.records import survey
from tests.reproduction.sample import config_of, score, write, write_several
from training.metrics_log import NAME


def titles(sheet):
    return [column.title for column in sheet.filled]


def test_means_and_deviations_are_numpys(tmp_path):
    configs = [config_of("listops", "transformer", seed) for seed in (0, 3, 7)]
    for config in configs:
        write(tmp_path / f"seed-{config.seed}", config)
    (sheet,) = comparison(survey(tmp_path)[0])
    (row,) = sheet.rows
    validation = [100 * score(config, 5) for config in configs]
    test = [100 * (score(config, 5) - 0.01) for config in configs]
    for name, values in (("validation", validation), ("test", test)):
        mean = row[f"{name}_accuracy_percent"]
        assert mean == pytest.approx(np.mean(values), rel=1e-12)
        deviation = row[f"{name}_accuracy_percent_deviation"]
        assert deviation == pytest.approx(np.std(values, ddof=1), rel=1e-9)
    assert row["test_loss"] == pytest.approx(np.mean([1.25, 1.28, 1.32]))
    assert (row["runs"], row["finished"], row["epochs"]) == (3, 3, 5)
    assert row["parameters"] == 1_011_000
    assert "settings" not in titles(sheet) and "steps" not in titles(sheet)
    assert len(sheet.notes) == 1  # nothing of a fidelity, which the Transformer has not


def test_tasks_variants_and_settings(tmp_path):
    listops, multi30k = comparison(survey(write_several(tmp_path))[0])
    assert [listops.title, multi30k.title] == ["listops", "multi30k"]
    # The paper's order, whatever the order of the folders.
    assert [row["variant"] for row in listops.rows] == [
        "transevolve-randomff-1",
        "transevolve-fullff-1",
        "transevolve-fullff-2",
        "transformer",
    ]
    assert [row["settings"] for row in multi30k.rows] == [
        "learning_rate_max 0.2",
        "learning_rate_max 0.4",
    ]
    # The best validation of a translation is its lowest loss; one run has no spread.
    assert "best validation loss" in titles(multi30k)
    assert "test BLEU (13a)" in titles(multi30k) and "steps" in titles(multi30k)
    assert not any("±" in title for title in titles(multi30k))
    for row in multi30k.rows:
        assert row["validation_loss_deviation"] is None and row["steps"] == 600


def test_unfinished_and_failed_runs_are_counted_and_named(tmp_path):
    listops, _ = comparison(survey(write_several(tmp_path))[0])
    row = next(row for row in listops.rows if row["variant"].endswith("fullff-2"))
    assert (row["runs"], row["finished"]) == (2, 0)
    assert row["test_accuracy_percent"] is None
    assert row["epochs"] == 2  # the mean of 3 and 1
    _, fidelity, unfinished, failed = listops.notes
    assert fidelity == "The fidelity of TransEvolve is paper."
    assert "1 of 11 runs: listops/transevolve-fullff-2/seed-0 (epoch 3.0" in unfinished
    assert "seed-1 (step 131: expected a finite loss" in failed


def test_a_mean_leaves_out_runs_that_have_not_finished(tmp_path):
    finished = config_of("listops", "transformer", 0)
    write(tmp_path / "a", finished)
    write(tmp_path / "b", config_of("listops", "transformer", 1), 2, results=False)
    write(tmp_path / "c", config_of("listops", "transformer", 2), 0, results=False)
    (sheet,) = comparison(survey(tmp_path)[0])
    (row,) = sheet.rows
    assert (row["runs"], row["finished"]) == (3, 1)
    assert row["validation_accuracy_percent"] == 100 * score(finished, 5)
    assert "b (epoch 2.0, step 240); c (nothing logged yet)" in sheet.notes[1]


def test_a_seed_counts_once(tmp_path):
    """As where two commands have trained the same."""
    config = config_of("listops", "transformer", 0)
    write(tmp_path / "a", config, 2, results=False)
    write(tmp_path / "b", config)
    write(tmp_path / "c", config)
    write(tmp_path / "d", config_of("listops", "transformer", 1))
    (sheet,) = comparison(survey(tmp_path)[0])
    (row,) = sheet.rows
    assert (row["runs"], row["finished"]) == (2, 2)
    assert row["test_loss"] == pytest.approx(1.255)
    said = "Left out, since another run of the row has the seed: a, c."
    assert said in sheet.notes


@pytest.mark.parametrize("accuracy", ["NaN", '"0.9"', "true", "1" * 400])
def test_of_two_runs_with_a_seed_the_sound_one_counts(tmp_path, accuracy):
    config = config_of("listops", "transformer", 0)
    write(tmp_path / "sound", config, results=False)
    workdir = write(tmp_path / "damaged", config)
    path = workdir / "results/test.json"
    path.write_text(f'{{"parameters": 1, "accuracy": {accuracy}}}')
    runs, damaged = survey(tmp_path)
    assert [run.name for run in runs] == ["sound"]
    assert list(damaged) == ["damaged"] and str(path) in damaged["damaged"]
    (sheet,) = comparison(runs)
    (row,) = sheet.rows
    assert row["validation_accuracy_percent"] == 100 * score(config, 5)
    assert (row["runs"], row["finished"]) == (1, 1)


def test_a_run_that_was_evaluated_on_the_way_has_not_finished(tmp_path):
    write(tmp_path / "a", config_of("listops", "transformer", 0))
    write(tmp_path / "b", config_of("listops", "transformer", 1), epochs=1)
    write(tmp_path / "c", config_of("multi30k", "transformer"), epochs=4)
    runs = {run.name: run.state for run in survey(tmp_path)[0]}
    assert runs == {"a": "finished", "b": "unfinished", "c": "unfinished"}


def test_a_run_that_was_not_evaluated_has_finished(tmp_path):
    """Its validation scores are what there is to show."""
    write(tmp_path / "a", config_of("listops", "transformer", 0), results=False)
    (run,) = survey(tmp_path)[0]
    assert run.state == "finished"
    (sheet,) = comparison([run])
    assert sheet.rows[0]["finished"] == 1 and len(sheet.notes) == 1


def test_settings_are_in_the_order_of_their_numbers(tmp_path):
    for warmup in (100, 50, 200):
        config = config_of("listops", "transformer", train__warmup_steps=warmup)
        write(tmp_path / str(warmup), config)
    (sheet,) = comparison(survey(tmp_path)[0])
    found = [row["settings"] for row in sheet.rows]
    assert found == ["warmup_steps 50", "warmup_steps 100", "warmup_steps 200"]


def test_every_evaluation_of_test_data_is_shown(tmp_path):
    workdir = write(tmp_path / "a", config_of("multi30k", "transformer"))
    for name, bleu in (("test-average-10", 35.5), ("validation", 36.5)):
        result = {"bleu_13a": bleu, "chrf": None}
        (workdir / f"results/{name}.json").write_text(json.dumps(result))
    (sheet,) = comparison(survey(tmp_path)[0])
    assert sheet.rows[0]["test_average_10_bleu_13a"] == 35.5
    assert "test-average-10 BLEU (13a)" in titles(sheet)
    assert "test-average-10 chrF" not in titles(sheet)
    assert "validation BLEU (13a)" not in titles(sheet)
    sheet.json(), sheet.csv(), sheet.markdown()


def test_metrics_that_are_none_count_as_missing(tmp_path):
    workdir = write(tmp_path / "a", config_of("listops", "transformer"), epochs=1)
    with (workdir / NAME).open("a") as file:
        file.write('{"step": 240, "split": "validation", "accuracy": null}\n')
        file.write('{"step": 480, "split": "validation", "accur')
    (run,) = survey(tmp_path)[0]
    assert len(run.validations) == 2
    (sheet,) = comparison([run])
    assert 0 < sheet.rows[0]["validation_accuracy_percent"] < 50


def test_runs_are_grouped_by_what_decides(tmp_path):
    one = config_of("listops", "transformer")
    others = {
        # Where files lie and how often is logged is all the same.
        "places": config_of("listops", "transformer", 5, train__log_every=7),
        "layers": config_of("listops", "transformer", model__num_layers=2),
        # What a variant's name says is no setting.
        "variant": config_of("listops", "transevolve-fullff-1"),
    }
    others["places"].data.cache_dir = "/elsewhere"
    write(tmp_path / "one", one)
    for name, config in others.items():
        write(tmp_path / name, config)
    names = {
        key: [run.name for run in runs]
        for key, runs in group(survey(tmp_path)[0]).items()
    }
    assert names == {
        ("transevolve-fullff-1", ""): ["variant"],
        ("transformer", ""): ["one", "places"],
        ("transformer", "num_layers 2"): ["layers"],
    }


def test_settings_that_most_runs_share(tmp_path):
    for seed in range(3):
        write(tmp_path / f"t{seed}", config_of("listops", "transformer", seed))
    write(tmp_path / "e", config_of("listops", "transevolve-fullff-1"))
    runs = survey(tmp_path)[0]
    usual = usual_settings(runs)
    assert usual["model.num_layers"] == "6" and "model.num_depths" not in usual
    unusual = unusual_settings(runs[0], usual)
    assert unusual["model.num_depths"] == "6"
    assert unusual["model.num_layers"] == ABSENT
    assert unusual_settings(runs[1], usual) == {}
    for name, value in settings(runs[0]).items():
        assert unusual.get(name, usual.get(name)) == value


def test_values_of_fields_in_words():
    values = [1, True, None, 0.5, [64, 128], "a"]
    words = ["1", "true", "none", "0.5", "64, 128", "a"]
    assert list(map(in_words, values)) == words
