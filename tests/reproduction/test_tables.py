"""What tables make of runs; nobody trains here."""

import csv
import io
import json

import numpy as np
import pytest

from configs.published import (
    ACCURACY,
    ACCURACY_SPREAD,
    BLEU,
    EXAMPLES,
    OTHER_ACCURACY,
    SPEED,
    SYSTEMS,
)
from data import DATASETS
from models.bag_of_words import BAG_OF_WORDS
from reproduction import tables
from reproduction.scales import SCALES
from reproduction.scores import (
    DIFFERS,
    NOT_RUN,
    OTHER_MEASURE,
    REPRODUCED,
    interval,
    mean_score,
    order,
    verdict,
)
from reproduction.sheet import Column, Sheet
from tests.reproduction.made_runs import (
    PAPER,
    PAPERS,
    experiments_of,
    results_of,
    rows,
    run_of,
)
from training.config import check

OF_RUNS = [name for name, table in tables.TABLES.items() if hasattr(table, "rows")]


def classifier(experiment, accuracy, test=()):
    scores = [{"step": i, "accuracy": x} for i, x in enumerate(test, start=1)]
    result = {"accuracy": accuracy, "parameters": 12, "loss": 1.0}
    config, whole = experiment.make_config({}), EXAMPLES[experiment.task]
    result["examples"], training = whole["test"], whole["train"]
    if "validation" not in DATASETS[config.data.dataset].SPLITS:
        training -= config.data.validation_examples
    return run_of(experiment, {"test": result}, scores, training=training)


def test_accuracies_stand_beside_the_published(tmp_path):
    table = tables.TABLES["3"]
    experiments = experiments_of(table, PAPER)
    # 2 tasks; 5 variants, 2 other systems and a bag of words; 5 seeds.
    assert len(experiments) == len({one.name for one in experiments}) == 80
    near = ACCURACY["imdb"]["transevolve-fullff-2"] / 100
    found = []
    for one in experiments:
        if one.task == "imdb" and one.variant == "transevolve-fullff-2":
            accuracy = near + 0.001 * one.seed
            test = (accuracy - 0.1, accuracy + 0.01, accuracy - 0.02)
            found.append(classifier(one, accuracy, test))
        if one.task == "ag_news" and one.seed == 0 and one.variant in PAPERS:
            found.append(classifier(one, 0.5))
    (sheet,) = table.sheets(PAPER, results_of(found, tmp_path))
    (row,) = rows(sheet, task="imdb", model="transevolve-fullff-2")
    accuracies = 100 * near + 0.1 * np.arange(5)
    assert row["runs"] == 5
    assert row["accuracy"] == pytest.approx(accuracies.mean())
    assert row["accuracy_deviation"] == pytest.approx(accuracies.std(ddof=1))
    assert row["paper_way"] == pytest.approx(accuracies.mean() + 1)
    assert row["last"] == pytest.approx(accuracies.mean() - 2)
    assert row["last_deviation"] == pytest.approx(accuracies.std(ddof=1))
    assert row["difference"] == pytest.approx(0.2)
    assert row["paper_way_difference"] == pytest.approx(1.2)
    assert (row["badge"], row["fidelity"]) == (REPRODUCED, "paper")
    assert row["paper_way_badge"] == DIFFERS
    (alone,) = rows(sheet, task="ag_news", model="transevolve-fullff-1")
    assert (alone["badge"], alone["runs"]) == (DIFFERS, 1)
    assert alone["accuracy_deviation"] is alone["paper_way"] is None
    (baseline,) = rows(sheet, task="ag_news", model="transformer")
    assert baseline["badge"] == OTHER_MEASURE  # published elsewhere
    assert sheet.name == "table3"
    for task in ("ag_news", "imdb"):
        of_task = rows(sheet, task=task)
        systems = list(OTHER_ACCURACY[task])
        assert [row["model"] for row in of_task] == [*PAPERS, *systems, BAG_OF_WORDS]
        assert {row["badge"] for row in of_task[len(PAPERS) :]} == {NOT_RUN}
        for row in of_task[len(PAPERS) : -1]:
            assert row["published"] == OTHER_ACCURACY[task][row["model"]]
            assert row["system"] == SYSTEMS[row["model"]]


def test_runs_that_failed_or_have_not_ended_do_not_count(tmp_path):
    table = tables.TABLES["3"]
    one, two, three, *_ = experiments_of(table, PAPER)
    sound = classifier(one, 0.9)
    failed = classifier(two, 0.1)._replace(failure="out of memory")
    unfinished = classifier(three, 0.1)._replace(results={})
    (sheet,) = table.sheets(PAPER, results_of([sound, failed, unfinished], tmp_path))
    (row,) = rows(sheet, task="ag_news", model=one.variant)
    assert (row["runs"], row["accuracy"]) == (1, pytest.approx(90.0))


@pytest.mark.parametrize("name, task", [("3", "ag_news"), ("4", "listops")])
def test_a_part_of_the_data_reproduces_nothing(name, task, tmp_path):
    table = tables.TABLES[name]
    one, *_ = experiments_of(table, PAPER)
    whole = classifier(one, ACCURACY[task][one.variant] / 100)
    fewer_tests = {"test": {**whole.results["test"], "examples": 1000}}
    fewer_texts = {**whole.facts, "training_examples": 6000}
    for run, expected in (
        (whole, REPRODUCED),
        (whole._replace(results=fewer_tests), OTHER_MEASURE),
        (whole._replace(facts=fewer_texts), OTHER_MEASURE),
    ):
        sheet, *_ = table.sheets(PAPER, results_of([run], tmp_path))
        (row,) = rows(sheet, task=task, model=one.variant)
        assert row["badge"] == expected
        said = f"{task} was run on a part of its data." in sheet.notes
        assert said == (expected == OTHER_MEASURE)
        made = [note for note in sheet.notes if "were generated here" in note]
        assert len(made) == (task == "listops")


def test_known_sizes_are_those_of_the_data_sets():
    for task in ("ag_news", "imdb"):
        assert EXAMPLES[task] == DATASETS[task].NUM_EXAMPLES
    listops = PAPER.tasks["listops"]
    config = listops._replace(variant="transformer").make_config({})
    for split, count in EXAMPLES["listops"].items():
        assert config.data[f"{split}_examples"] == count


def test_runs_of_other_settings_are_left_out(tmp_path):
    """As an older version left them in the folder."""
    table = tables.TABLES["3"]
    one, *_ = experiments_of(table, PAPER)
    run = classifier(one, 0.9)
    longer = {**run.config["train"], "epochs": 3}
    other = run._replace(config={**run.config, "train": longer})
    elsewhere = {**run.config["data"], "dir": "/elsewhere", "source": "files"}
    moved = run._replace(config={**run.config, "data": elsewhere})
    for found, count in ((other, 0), (moved, 1)):
        (sheet,) = table.sheets(PAPER, results_of([found], tmp_path))
        (row,) = rows(sheet, task="ag_news", model=one.variant)
        assert row["runs"] == count


@pytest.mark.parametrize("name", ["laptop", "smoke"])
def test_no_other_scale_reproduces(name, tmp_path):
    """However near its figures are."""
    scale = SCALES[name]
    table = tables.TABLES["4"]
    found = [
        classifier(one, ACCURACY[one.task].get(one.variant, 0) / 100)
        for one in experiments_of(table, scale)
    ]
    sheet, _ = table.sheets(scale, results_of(found, tmp_path))
    badges = {row["badge"] for row in sheet.rows}
    assert {OTHER_MEASURE} <= badges <= {OTHER_MEASURE, NOT_RUN}
    assert sheet.notes[0] == scale.meaning


@pytest.mark.parametrize("named", [True, False])
def test_systems_that_run_here(named, tmp_path):
    """They run, and have the row of the figure that was published for them."""
    table = tables.TABLES["4"]
    scale = PAPER
    if named:  # by --variants
        performer = {"transformer-linear-favor": {}}
        scale = PAPER._replace(variants=performer, systems={})
    experiments = experiments_of(table, scale.with_seeds(1))
    count = 1 if named else len(PAPERS) + len(scale.systems)
    assert len(experiments) == 2 * count
    published = OTHER_ACCURACY["listops"]["transformer-linear-favor"]
    found = [
        classifier(one, published / 100)
        for one in experiments
        if one.name.startswith("listops/transformer-linear-favor")
    ]
    sheet, _ = table.sheets(scale.with_seeds(1), results_of(found, tmp_path))
    (row,) = rows(sheet, task="listops", system="Performer")
    assert (row["model"], row["runs"]) == ("transformer-linear-favor", 1)
    assert row["published"] == published
    # In other settings, so that the same figure shows nothing.
    assert row["badge"] == OTHER_MEASURE
    (row,) = rows(sheet, task="listops", system="linear attention")
    assert (row["model"], row["badge"]) == ("transformer-linear", NOT_RUN)
    (three,) = tables.TABLES["3"].sheets(scale.with_seeds(1), results_of([], tmp_path))
    systems = {row["system"] for row in three.rows if row["system"]}
    assert systems == {"Linformer", "Synthesizer"}


def test_speeds_stand_beside_the_published(tmp_path):
    measured = [
        {
            "benchmark": "speed",
            "model": name,
            "length": length,
            "batch": 4,
            "seconds": 1.0,
            "ratio_to_transformer": ratio,
        }
        for name, ratio in (("transformer", 1.0), ("transevolve-fullff-1", 1.76))
        for length in (1000, 2000)
    ]
    died = {"model": "transformer", "length": 4000, "not_run": "memory ran out"}
    measured.append({"benchmark": "speed", **died})
    alone = {"model": "transevolve-fullff-1", "length": 4000, "seconds": 2.0}
    # Another command had it measured.
    other = {"model": "transevolve-fullff-1-linear", "length": 5000, "seconds": 3.0}
    measured += [{"benchmark": "speed", **row} for row in (alone, other)]
    table = tables.TABLES["4"]
    speeds = [*measured, {"benchmark": "x_fit", "model": "transformer"}]
    memory = [{"benchmark": "memory", **died}]
    for name, content in (("speed", speeds), ("memory", memory)):
        content = {"rows": content, "device": "1 CPU"}
        (tmp_path / f"{name}_benchmark.json").write_text(json.dumps(content))
    _, sheet = table.sheets(PAPER, results_of([], tmp_path))
    *_, device, reason, of_memory = sheet.notes
    expected = "The memory of transformer was not measured at 4,000: memory ran out."
    assert of_memory == expected
    (row,) = rows(sheet, model="transevolve-fullff-1", length=4000)
    assert (row["speed"], row["badge"]) == (None, OTHER_MEASURE)
    (row,) = rows(sheet, model=other["model"])
    assert (row["seconds"], row["published"]) == (3.0, None)
    assert device == "They were measured on 1 CPU, whatever trained."
    assert reason == "transformer was not timed at 4,000: memory ran out."
    (row,) = rows(sheet, model="transevolve-fullff-1", length=2000)
    assert row["difference"] == pytest.approx(
        1.76 - SPEED["transevolve-fullff-1"][2000]
    )
    assert row["badge"] == OTHER_MEASURE
    assert not rows(sheet, length=3000)
    (row,) = rows(sheet, system="Performer", length=4000)
    assert (row["model"], row["published"]) == ("transformer-linear-favor", 5.7)
    (row,) = rows(sheet, system="Linformer", length=4000)
    assert (row["published"], row["badge"]) == (5.5, NOT_RUN)
    picture, _ = sheet.pictures
    assert (tmp_path / picture.file).stat().st_size > 1000
    assert "1.76" in picture.alternative
    _, sheet = table.sheets(PAPER, results_of([], tmp_path / "nothing timed"))
    (row,) = rows(sheet, model="transevolve-fullff-1", length=3000)
    assert (row["speed"], row["badge"]) == (None, NOT_RUN)


def translator(split, checkpoints, examples):
    """Results with BLEU of the chosen checkpoint and of the last ones."""

    def scores(bleu):
        others = {"bleu_13a": bleu + 1, "bleu_intl": bleu + 2, "chrf": 50.0}
        return {"bleu_authors": bleu, **others}

    mean = scores(float(np.mean(checkpoints)))
    return {
        split: {
            **scores(checkpoints[0]),
            "parameters": 55_780_352,
            "examples": examples,
        },
        f"{split}-average-10": {
            **scores(40.0),
            "mean_of_checkpoints": mean,
            "checkpoints": [scores(bleu) for bleu in checkpoints],
        },
    }


def translated(experiments, checkpoints):
    for one in experiments:
        bleu = [x + one.seed for x in checkpoints]
        whole, results = EXAMPLES[one.task], {}
        for split in one.splits:
            results |= translator(split, bleu, whole[split])
        # Some pairs are too long.
        yield run_of(one, results, training=0.99 * whole["train"])


def test_translations_stand_beside_the_published(tmp_path):
    table = tables.TABLES["2"]
    experiments = experiments_of(table, PAPER.with_seeds(2))
    assert len(experiments) == 2 * 5 * 2
    found = [
        run
        for run in translated(experiments, (20.0, 28.0, 30.1))
        if run.variant in ("transevolve-fullff-2", "transformer")
    ]
    (sheet,) = table.sheets(PAPER.with_seeds(2), results_of(found, tmp_path))
    assert len(sheet.rows) == 3 * len(PAPERS)
    mean = 26.033333 + 0.5
    (row,) = rows(sheet, test_set="en-de newstest2013", model="transevolve-fullff-2")
    assert row["mean_bleu_authors"] == pytest.approx(mean)
    assert row["chosen_bleu_13a"] == pytest.approx(21.5)
    assert row["last"] == pytest.approx(30.6)
    assert row["weights"] == pytest.approx(40.0)
    for key in ("compared", "last", "chosen_bleu_13a", "mean_bleu_authors"):
        assert row[f"{key}_deviation"] == pytest.approx(np.std([0, 1], ddof=1))
    assert "26.53 ± 0.71" in sheet.markdown()
    published = BLEU["en", "de"]["newstest2013"]["transevolve-fullff-2"]
    assert row["difference"] == pytest.approx(mean - published, abs=1e-5)
    assert (row["badge"], row["beside"]) == (REPRODUCED, "bleu_authors")
    assert row["published_parameters"] == 59
    assert row["parameters_difference"] == pytest.approx(55.78 - 59, abs=0.01)
    assert row["parameters_badge"] == OTHER_MEASURE
    (row,) = rows(sheet, test_set="en-de newstest2014", model="transformer")
    assert (row["badge"], row["beside"]) == (OTHER_MEASURE, "bleu_13a")
    assert row["last"] == pytest.approx(31.6)  # as what it is compared with
    (row,) = rows(sheet, test_set="en-fr newstest2014", model="transevolve-fullff-2")
    assert row["badge"] == DIFFERS
    (row,) = rows(sheet, test_set="en-fr newstest2014", model="transevolve-fullff-1")
    assert (row["badge"], row["runs"]) == (NOT_RUN, 0)


@pytest.mark.parametrize("part", ["training", "test"])
def test_a_part_of_the_pairs_reproduces_nothing(part, tmp_path):
    table = tables.TABLES["2"]
    one = next(x for x in experiments_of(table, PAPER.with_seeds(1)) if "de/" in x.name)
    published = BLEU["en", "de"]["newstest2014"][one.variant]
    (run,) = translated([one], [published] * 2)
    if part == "training":
        fewer = run._replace(facts={**run.facts, "training_examples": 29_000})
    else:
        test = {**run.results["test"], "examples": 1000}
        fewer = run._replace(results={**run.results, "test": test})
    for found, expected in ((run, REPRODUCED), (fewer, OTHER_MEASURE)):
        (sheet,) = table.sheets(PAPER.with_seeds(1), results_of([found], tmp_path))
        (row,) = rows(sheet, test_set="en-de newstest2014", model=one.variant)
        assert row["badge"] == expected


def test_what_stands_in_for_a_test_set_is_named(tmp_path):
    scale = SCALES["laptop"]
    (sheet,) = tables.TABLES["2"].sheets(scale, results_of([], tmp_path))
    assert {row["test_set"] for row in sheet.rows} == {
        "en-de Multi30k validation, for newstest2013",
        "en-de Multi30k test, for newstest2014",
        "en-fr Multi30k test, for newstest2014",
    }


def test_learning_rates_share_the_runs_of_table_2(tmp_path):
    table = tables.TABLES["figure2"]
    experiments = experiments_of(table, PAPER)
    assert len(experiments) == 2 * 6 * 5
    shared = {one.name for one in tables.experiments(["2"], PAPER)}
    # The paper's own pair is table 2's run, with what that table wants.
    assert len(shared & {one.name for one in experiments}) == 2 * 5
    for one in experiments:
        is_alone = one.name not in shared or "en_fr" in one.name
        assert (one.splits == ("test",)) == is_alone
    found = list(translated(experiments, (25.0, 26.5, 26.0)))
    (sheet,) = table.sheets(PAPER, results_of(found, tmp_path))
    assert len(sheet.rows) == 12
    for row in sheet.rows:
        assert row["bleu"] == pytest.approx(28.5)
        assert (row["lowest"], row["highest"]) == (26.5, 30.5)
        assert row["fidelity"] == "paper"
    pairs = {(row["rate"], row["warmup"]) for row in sheet.rows}
    assert pairs == {(r, w) for r in (1.0, 1.5) for w in (4000, 8000, 16000)}
    (picture,) = sheet.pictures
    assert (tmp_path / picture.file).exists()


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("name", OF_RUNS)
def test_every_run_has_a_config_that_holds(name, scale):
    runs = tables.experiments([name], scale.with_seeds(1))
    assert runs
    for one in runs:
        check(one.make_config({}))


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_table_without_runs_is_whole(name, tmp_path):
    """As Markdown, JSON and CSV; what lacks data is said."""
    scale = SCALES["laptop"]
    results = results_of([], tmp_path)
    for sheet in tables.TABLES[name].sheets(scale, results):
        assert sheet.markdown().startswith(f"# {sheet.title}\n\n| ")
        rows = list(csv.DictReader(io.StringIO(sheet.csv())))
        assert len(rows) == len(sheet.rows) == len(json.loads(sheet.json())["rows"])
        if sheet.name.startswith("table"):
            assert " was not run: --data_dir has no " in sheet.markdown()


def test_a_text_of_all_rows_is_a_sentence():
    columns = [
        Column("model", "model"),
        Column("badge", "verdict"),
        Column("n", "n", 0),
    ]
    rows = [{"model": "a", "badge": NOT_RUN, "n": 1} for _ in range(2)]
    said = f'All rows have "{NOT_RUN}" as verdict.'
    sheet = Sheet("name", "Title", columns, rows)
    assert sheet.markdown().startswith("# Title\n\n| model | n |\n")
    assert said in sheet.markdown()
    assert sheet.csv().startswith("model,badge,n\n")
    for row in ({"model": "a"}, {"model": "a", "badge": DIFFERS}):
        text = sheet._replace(rows=[*rows, row]).markdown()
        assert "| model | verdict | n |" in text and said not in text
    # One row is a row.
    assert said not in sheet._replace(rows=rows[:1]).markdown()


def test_a_verdict_goes_by_the_difference():
    def badge(*figures):
        return verdict(*figures)["badge"]

    assert badge(None, 36.4, True) == NOT_RUN
    assert badge(36.0, 36.4, True) == REPRODUCED
    assert badge(36.9, 36.4, True) == REPRODUCED
    assert badge(36.95, 36.4, True) == DIFFERS
    assert badge(37.2, 36.4, True, 0.8) == REPRODUCED
    assert badge(36.4, 36.4, False) == badge(36.4, None, True) == OTHER_MEASURE
    assert set(ACCURACY_SPREAD) == set(ACCURACY)


def test_a_mean_leaves_out_what_is_no_number():
    assert mean_score([]) == (None, None, 0)
    assert mean_score([2.0, None]) == (2.0, None, 1)
    assert mean_score([1.0, 3.0, float("nan")]) == (2.0, pytest.approx(2**0.5), 2)


def test_an_interval_covers_nineteen_of_twenty_draws():
    generator, truth, examples = np.random.default_rng(0), 60.0, 2000
    scores = generator.binomial(examples, truth / 100, size=4000) / examples * 100
    covered = [abs(score - truth) < interval([score], examples) for score in scores]
    assert 0.94 < np.mean(covered) < 0.96
    # Seeds differ by more than a draw of the test data does.
    assert interval([50.0, 60.0, 70.0], examples) > 2 * interval([60.0], examples)
    assert interval([], examples) is None and interval([100.0], 10) > 5


def test_the_order_counts_pairs():
    rows = [(60.0, 1.0, 65.0), (55.0, 1.0, 66.0), (54.9, 1.0, 64.0), (50.0, 1.0, 64.0)]
    said = "of 5 pairs of models that have different published figures, 4 stand here in"
    said += " the published order. The difference is clear in 4 pairs, 3 of them in the"
    assert order(rows).startswith(said)
    assert order(rows[2:]) is None


def test_a_table_says_where_the_order_is_the_published_one(tmp_path):
    table = tables.TABLES["3"]
    runs = [
        classifier(one, ACCURACY[one.task][one.variant] / 100)
        for one in experiments_of(table, PAPER)
        if one.task == "imdb" and one.variant in ACCURACY["imdb"] and not one.seed
    ]
    [sheet] = table.sheets(PAPER, results_of(runs, tmp_path))
    ranked = len({ACCURACY["imdb"][run.config["variant"]] for run in runs})
    assert ranked > 2
    [said] = [note for note in sheet.notes if note.startswith("On imdb, of")]
    pairs = said.removeprefix("On imdb, of ").split()[0]
    assert f"published figures, {pairs} stand here in the published order" in said
    assert not [note for note in sheet.notes if note.startswith("On ag_news, of")]
