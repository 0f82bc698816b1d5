"""What results are made of: the runs that lie there, whatever this command runs."""

import errno
import json

import pytest

from common.errors import UserError
from evaluation.evaluate import result_name
from reproduction import plan, records, running
from reproduction import reproduce as reproducing
from reproduction.records import FACTS
from reproduction.reproduce import Reproduction
from reproduction.running import is_done
from reproduction.scales import SCALES
from tests.reproduction.made_data import make_data
from training import workdir as workdirs

SMOKE = SCALES["smoke"]


class Vocabulary:
    """Stands in for a tokenizer."""

    name, identity = "wordpiece", []

    def save(self, directory):
        (directory / "vocab.txt").write_text("[PAD]\n[UNK]\ngood\nbad\nfilm\nnews\n")


def leave(experiment, folder, facts=None, without=()):
    """Writes what a run of an experiment leaves, but for some evaluations."""
    workdir = folder.workdir(experiment)
    (workdir / "results").mkdir(parents=True)
    config = folder.config(experiment)
    workdirs.keep(config, Vocabulary(), {"training": 1, "validation": 1}, workdir)
    scores = {"bleu_13a": 20.0, "bleu_authors": 21.0, "bleu_intl": 22.0}
    scores["chrf"] = 50.0
    result = {"accuracy": 0.5, "loss": 1.0, "parameters": 3, "examples": 20, **scores}
    result |= {"mean_of_checkpoints": scores, "checkpoints": [scores]}
    for evaluation in experiment.evaluations:
        if (name := result_name(*evaluation)) not in without:
            (workdir / f"results/{name}.json").write_text(json.dumps(result))
    facts = {"seconds": 60, "finished": True} if facts is None else facts
    (workdir / FACTS).write_text(json.dumps(facts))
    return workdir


@pytest.fixture
def made(tmp_path):
    """A function that makes a `Reproduction` of a folder with data and runs."""
    make_data(tmp_path / "data")

    def make(table, data_dir=tmp_path / "data", **others):
        return Reproduction(table, "smoke", tmp_path / "out", data_dir, **others)

    return make


def rows(reproduction, **wanted):
    found = [row for sheet in reproduction.sheets() for row in sheet.rows]
    return [row for row in found if wanted.items() <= row.items()]


def test_runs_that_are_left_out_now_are_shown(made):
    reproduction = made("3", only="^imdb")
    ag_news = next(one for one in made("3").experiments if "ag_news" in one.name)
    leave(ag_news, reproduction.folder)
    assert {one.task for one in reproduction.experiments} == {"imdb"}
    (row,) = rows(reproduction, task="ag_news", model=ag_news.variant)
    assert (row["runs"], row["accuracy"]) == (1, 50.0)
    reproduction.write()
    report = reproduction.folder.results / "report.html"
    assert ag_news.name in report.read_text()


def test_a_finished_run_is_shown_without_its_data(made):
    one = made("3").experiments[0]
    leave(one, made("3").folder)
    reproduction = made("3", data_dir=None)
    (row,) = rows(reproduction, task="ag_news", model=one.variant)
    assert row["runs"] == 1
    (sheet,) = reproduction.sheets()
    said = [note for note in sheet.notes if "was not run" in note]
    assert said == ["imdb was not run: --data_dir has no aclImdb or aclImdb*.tar.gz."]


@pytest.mark.parametrize("facts, without", [({"seconds": 1}, ""), (None, "test")])
def test_a_run_without_all_evaluations_is_not_finished(made, facts, without):
    """Nor does it end the making of a table."""
    reproduction = made("2")
    one = next(x for x in reproduction.experiments if len(x.splits) == 2)
    leave(one, reproduction.folder, facts, [f"{without}-average-2"])
    assert not is_done(one, reproduction.folder)
    assert not any(row["runs"] for row in rows(reproduction))
    leave(one._replace(seed=1), reproduction.folder)
    assert is_done(one._replace(seed=1), reproduction.folder)
    twice = made("2", seeds=2)
    found = [row for row in rows(twice, model=one.variant) if "2013" in row["test_set"]]
    assert [row["runs"] for row in found] == [1]


def test_a_run_is_finished_when_it_says_so(made):
    one, folder = made("3").experiments[0], made("3").folder
    workdir = leave(one, folder, {"seconds": 1})
    assert records.read(workdir).state == records.UNFINISHED
    (workdir / FACTS).write_text('{"seconds": 1, "finished": true}')
    assert records.read(workdir).state == records.FINISHED
    (workdir / FACTS).unlink()  # as train.py and evaluate.py leave it
    assert records.read(workdir).state == records.FINISHED


def test_variants_limit_what_is_run_and_not_what_is_shown(made):
    ran = made("3").experiments[0]
    leave(ran, made("3").folder)
    reproduction = made("3", models=["transevolve-fullff-1"])
    assert {one.variant for one in reproduction.experiments} == {"transevolve-fullff-1"}
    (row,) = rows(reproduction, task=ran.task, model=ran.variant)
    assert row["runs"] == 1
    leave(reproduction.experiments[0], reproduction.folder)
    (row,) = rows(reproduction, task="ag_news", model="transevolve-fullff-1")
    assert row["runs"] == 1


def test_seeds_of_before_are_shown(made):
    for one in made("3", seeds=3, only="ag_news").experiments:
        leave(one, made("3").folder)
    for seeds in (None, 1, 2):
        found = rows(made("3", seeds=seeds), task="ag_news", model="transformer")
        assert [row["runs"] for row in found] == [3]


def test_runs_on_another_disk_are_shown(made, tmp_path):
    """By a symbolic link to the folder of a task."""
    for one in made("3", seeds=2, only="ag_news").experiments:
        leave(one, made("3").folder)
    runs = made("3").folder.runs / "ag_news"
    runs.rename(tmp_path / "elsewhere")
    runs.symlink_to(tmp_path / "elsewhere")
    (row,) = rows(made("3"), task="ag_news", model="transformer")
    assert row["runs"] == 2


def test_other_seeds_run_when_a_rate_was_chosen(made, monkeypatch):
    task = SMOKE.tasks["imdb"]._replace(seeds=2)
    scale = SMOKE._replace(tasks={**SMOKE.tasks, "imdb": task})
    monkeypatch.setitem(SCALES, "smoke", scale)
    reproduction, ran = made("3", only="imdb/transformer/", tune=True), []
    (own,) = {
        one.make_config({}).train.learning_rate_max
        for one in reproduction.experiments
        if not one.choice
    }
    half, twice = f"lr-{own / 2:g}", f"lr-{2 * own:g}"

    def run_all(experiments, folder, *_):
        for one in experiments:
            workdir = leave(one, folder)
            is_best = one.choice == twice
            row = {"split": "validation", "step": 4, "accuracy": 0.5 + 0.1 * is_best}
            (workdir / "metrics.jsonl").write_text(json.dumps(row) + "\n")
        ran.append([(one.choice, one.seed) for one in experiments])
        return []

    monkeypatch.setattr(reproducing, "run_all", run_all)
    assert reproduction.run("one_device") == []
    assert ran == [[(half, 0), ("", 0), (twice, 0)], [(twice, 1)]]
    # Also by a command that tries no rates.
    (row,) = rows(made("3"), task="imdb", model="transformer")
    assert (row["runs"], row["rate"]) == (2, 2 * own)


@pytest.mark.parametrize("seeds", [0, -1, 1001, 1_000_000_000])
def test_more_seeds_than_anybody_runs_are_refused(made, seeds):
    with pytest.raises(UserError, match=f"^--seeds: .* 1 to 1,000, found {seeds}$"):
        made("3", seeds=seeds)


def test_a_foreign_folder_makes_no_seeds(made, caplog):
    """As one that is named by a date; it is told of."""
    reproduction = made("3", only="ag_news/transformer")
    folder = reproduction.folder.runs / "backup/of/seed-20251125"
    folder.mkdir(parents=True)
    (one,) = reproduction.experiments
    leave(one, reproduction.folder)
    assert reproduction.run("one_device") == []
    said = f"left out: {folder}: expected a seed below 1,000"
    assert caplog.messages.count(said) == 1


def test_a_run_with_a_damaged_file_is_taken_up_again(made, monkeypatch, caplog):
    """It is named, and in no table till then."""
    reproduction = made("3", only="ag_news/transformer")
    (one,) = reproduction.experiments
    path = leave(one, reproduction.folder) / "results/test.json"
    path.write_text(json.dumps({"accuracy": "0.5", "loss": 1.0, "parameters": 3}))
    tried = []
    monkeypatch.setattr(running, "_train_and_evaluate", lambda *_: tried.append(1))
    monkeypatch.setattr(running.cli, "log_to_stderr", lambda: None)

    def run(function, *arguments):
        return function(*arguments)

    monkeypatch.setattr(running, "in_own_process", run)
    reproduction.run("one_device")
    reason = f"{path}: accuracy: expected a number, found 0.5"
    assert tried and f"damaged, so the run is taken up again: {reason}" in caplog.text
    assert not any(row["runs"] for row in rows(reproduction))
    report = reproduction.folder.results / "report.html"
    assert f"The run {one.name} is left out: {reason}." in report.read_text()


@pytest.mark.parametrize(
    "result", [{"accuracy": 0.5}, {"accuracy": None, "loss": 1.0, "parameters": 3}]
)
def test_an_evaluation_that_lacks_a_figure_is_made_again(made, result):
    one, folder = made("3").experiments[0], made("3").folder
    path = leave(one, folder) / "results/test.json"
    assert is_done(one, folder)
    path.write_text(json.dumps(result))
    assert not is_done(one, folder)
    assert not any(row["runs"] for row in rows(made("3")))


def test_the_report_has_the_tables_of_before(made):
    # It is Figure 2's and the fidelity table's, too, which nobody has asked for.
    before = made("2").experiments[0]
    leave(before, made("2").folder)
    for table in ("2", "recall", "3"):
        reproduction = made(table)
        reproduction.write()
    folder = reproduction.folder.results
    assert {sheet.name for sheet in reproduction.sheets()} == {"table3"}
    written = {path.stem for path in folder.glob("*.md")}
    assert written == {"table2", "table3", "recall"}
    report = (folder / "report.html").read_text()
    assert before.name in report and "Table 2: translation" in report
    assert "Recall by the bytes that a model keeps" in report


def test_other_models_have_a_figure_2_and_fidelities_of_their_own(made):
    for table in ("figure2", "fidelity"):
        reproduction = made(table, models=["transevolve-fullff-1"])
        (sheet,) = reproduction.sheets()
        shown = {row["model"] for row in sheet.rows}
        ran = {one.variant for one in reproduction.experiments}
        assert shown == ran == {"transevolve-fullff-1"}


def test_results_are_written_while_others_run(made, monkeypatch):
    reproduction = made("3")
    report = reproduction.folder.results / "report.html"
    begun = []

    def run(function, one, folder, *others):
        begun.append(report.exists())
        leave(one, folder)
        return 0

    monkeypatch.setattr(running, "in_own_process", run)
    monkeypatch.setattr(reproducing, "SECONDS_BETWEEN_RESULTS", 0)
    assert reproduction.run("one_device") == []
    assert begun == [False, True, True, True]


def test_results_that_cannot_be_written_now_stop_no_run(made, monkeypatch, caplog):
    reproduction = made("3")
    tried, write = [], reproduction.write

    def run(function, one, folder, *others):
        leave(one, folder)
        return 0

    def writes():
        tried.append(len(tried))
        if len(tried) == 1:
            raise OSError(errno.ENOSPC, "No space left on device", "table3.md")
        write()

    monkeypatch.setattr(running, "in_own_process", run)
    monkeypatch.setattr(reproducing, "SECONDS_BETWEEN_RESULTS", 0)
    monkeypatch.setattr(reproduction, "write", writes)
    assert reproduction.run("one_device") == []
    assert len(tried) == len(reproduction.experiments) + 1
    assert "not written, runs go on: table3.md: No space left on device" in caplog.text


def test_the_report_says_how_far_the_plan_was_off(made):
    reproduction = made("3")
    one = reproduction.experiments[0]
    leave(one, reproduction.folder)
    reproduction.folder.results.mkdir(parents=True)
    (reproduction.folder.results / plan.NAME).write_text(json.dumps({one.name: 2.0}))
    reproduction.write()
    report = (reproduction.folder.results / "report.html").read_text()
    assert "1 runs took 1.0 minutes. The plan said 2.0, +100 %." in report
