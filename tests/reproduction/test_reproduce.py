"""reproduce.py --table, at the scale of tests, on made data, as a user runs it."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from common.errors import UserError
from common.interruption import EXIT_CODE
from common.json_files import read_rows
from reproduction import records, running, tables
from reproduction.experiment import Folder
from reproduction.report.page import report
from reproduction.scales import SCALES
from tests import forked, scripts
from tests.reproduction.browser import PHONE, open_all, serious_findings
from tests.reproduction.made_data import make_data
from tests.reproduction.sample import config_of, write
from training.lock import LockedError

pytestmark = [pytest.mark.slow, pytest.mark.script]

SMOKE = SCALES["smoke"]
# A run of pairs, which table 2 and Figure 2 share, one of texts, and one of data that
# is generated.
NAMES = [
    "multi30k-en-de/transevolve-randomff-1/seed-0",
    "ag_news/transformer/seed-0",
    "listops/transevolve-randomff-1/seed-0",
]
ONLY = f"^({'|'.join(NAMES)}|speed|memory)$"
MODELS = ["transevolve-randomff-1", "transformer-linear", "transformer"]


def arguments(folder, table="all", only=ONLY, **others):
    flags = {"table": table, "scale": "smoke", "data_dir": folder / "data"}
    flags |= {"only": only}
    flags |= {"output": folder / "output", **others}
    return [f"--{name}={value}" for name, value in flags.items()]


def start(folder, stream):
    (folder / stream).mkdir()
    return forked.start("reproduce.py", arguments(folder), folder / stream)


def wait_for(process, condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process.exitcode is None and time.monotonic() < end
        time.sleep(0.05)


def begun(folder):
    runs = folder / "output/runs/smoke"
    return sum((runs / name / "metrics.jsonl").exists() for name in NAMES)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs of all tables, after Ctrl-C, kill -9, and shared by two processes."""
    folder = tmp_path_factory.mktemp("reproduction")
    make_data(folder / "data")
    results = folder / "output/results/smoke"
    results.mkdir(parents=True)
    rows = [
        {"benchmark": "speed", "model": model, "length": length, "seconds": 1.0}
        | {"ratio_to_transformer": 1.0, "peak_memory_mb": 1000}
        for model in MODELS
        for length in (16, 32)
    ]
    for name in ("speed", "memory"):
        content = {"models": MODELS, "rows": rows}
        (results / f"{name}_benchmark.json").write_text(json.dumps(content))

    first = start(folder, "first")
    wait_for(first, lambda: begun(folder) == 1)
    os.kill(first.pid, signal.SIGINT)
    first.join(60)
    assert first.exitcode == EXIT_CODE
    said = (folder / "first/stderr").read_text().splitlines()[-1]
    assert said == "stopped by SIGINT: repeated, the command goes on from there"

    before = begun(folder)
    second = start(folder, "second")
    wait_for(second, lambda: begun(folder) > before)
    second.kill()
    second.join()

    both = [start(folder, name) for name in ("third", "fourth")]
    for process in both:
        process.join(400)
    for name, process in zip(("third", "fourth"), both, strict=True):
        assert process.exitcode == 0, (folder / name / "stderr").read_text()
    return folder


def runs_of(folder):
    found = records.survey(folder / "output/runs/smoke")[0]
    return {run.name: run for run in found}


def sheet(folder, name):
    return json.loads((folder / f"output/results/smoke/{name}.json").read_text())


def test_each_run_was_run_once_and_whole(made):
    runs = runs_of(made)
    assert set(NAMES) == set(runs)
    for run in runs.values():
        assert run.state == records.FINISHED
        log = made / "output/runs/smoke" / run.name / "metrics.jsonl"
        validations = [row for row in read_rows(log) if row["split"] == "validation"]
        steps = [row["step"] for row in validations]
        assert steps == [2, 4]  # a run that was killed went on, and none came twice
        assert run.facts["finished"]
        assert any("step 4: validation loss" in line for line in run.log)
    divided = [
        {line for line in (made / name / "stderr").read_text().splitlines()}
        for name in ("third", "fourth")
    ]
    trained = [
        {name for name in NAMES if any(line.endswith(f"] {name}") for line in lines)}
        for lines in divided
    ]
    assert trained[0] and trained[1]  # both had a share


def test_figures_are_those_of_the_runs(made):
    runs = runs_of(made)
    accuracies = sheet(made, "table3")["rows"] + sheet(made, "table4")["rows"]
    compared = 0
    for row in accuracies:
        run = runs.get(f"{row['task']}/{row['model']}/seed-0")
        if run is None:
            assert row["badge"] == "not run"
            continue
        test = [score["accuracy"] for score in run.test_scores]
        assert row["accuracy"] == pytest.approx(100 * run.results["test"]["accuracy"])
        assert row["paper_way"] == pytest.approx(100 * max(test))
        assert row["last"] == pytest.approx(100 * test[-1])
        assert row["parameters"] == run.results["test"]["parameters"]
        compared += 1
    assert compared == 2
    for row in sheet(made, "table2")["rows"]:
        language = row["test_set"].split()[0]
        split = "validation" if "2013" in row["test_set"] else "test"
        run = runs.get(f"multi30k-{language}/{row['model']}/seed-0")
        if run is not None:
            averaged = run.results[f"{split}-average-2"]
            singles = [one["bleu_13a"] for one in averaged["checkpoints"]]
            assert row["mean_bleu_13a"] == pytest.approx(np.mean(singles), abs=0.01)
            assert row["chosen_bleu_13a"] == run.results[split]["bleu_13a"]
            last = averaged["checkpoints"][-1][row["beside"]]
            assert row["last"] == pytest.approx(last)
            assert row["compared"] == row[f"mean_{row['beside']}"]
    figure_2 = sheet(made, "figure2")["rows"]
    assert len(figure_2) == 4
    (row,) = [row for row in figure_2 if row["runs"]]
    checkpoints = runs[NAMES[0]].results["test-average-2"]["checkpoints"]
    assert row["bleu"] == max(one["bleu_authors"] for one in checkpoints)
    assert (row["languages"], row["rate"], row["warmup"]) == ("en-de", 0.4, 2)
    timed = [row for row in sheet(made, "speed")["rows"] if row["speed"]]
    assert {row["length"] for row in timed} == {16, 32}


def test_scores_at_validations_are_those_that_evaluating_gives(made):
    for run in runs_of(made).values():
        if run.test_scores:
            chosen = run.results["test"]["accuracy"]
            assert any(
                score["accuracy"] == pytest.approx(chosen) for score in run.test_scores
            )


def test_results_are_whole(made):
    folder = made / "output/results/smoke"
    for name in ("table2", "table3", "table4", "speed", "figure2"):
        for ending in ("md", "json", "csv"):
            assert (folder / f"{name}.{ending}").stat().st_size > 100
    page = (folder / "report.html").read_text()
    assert len(page) < 5_000_000
    for name in NAMES:
        assert name in page


def test_the_report_in_a_browser(made, browse):
    report = made / "output/results/smoke/report.html"
    page = browse(report.as_uri(), PHONE)
    open_all(page)
    widths = page.locator("img").evaluate_all("all => all.map(one => one.naturalWidth)")
    assert len(widths) == 6 and min(widths) > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert serious_findings(page) == []


def test_nothing_is_done_again(made):
    before = {name: run.facts for name, run in runs_of(made).items()}
    result = forked.run("reproduce.py", arguments(made))
    assert result.returncode == 0
    assert f"{len(NAMES)} runs: {len(NAMES)} finished before" in result.stderr
    assert "measuring" not in result.stderr
    assert {name: run.facts for name, run in runs_of(made).items()} == before
    assert "# Table 3: text classification" in result.stdout


@pytest.fixture
def copied(made, tmp_path):
    """A function that copies a run into a folder of its own, with that `Folder`."""

    def copy(name):
        folder = Folder(tmp_path / "output", "smoke", made / "data")
        shutil.copytree(made / "output/runs/smoke" / name, folder.runs / name)
        every = tables.experiments(tables.ALL, SMOKE)
        return next(one for one in every if one.name == name), folder

    return copy


@pytest.mark.long
def test_a_run_whose_log_lost_its_end_has_not_finished(copied, made, tmp_path):
    """Its checkpoint counts more lines, and a table takes it up again to say so."""
    one, folder = copied(NAMES[2])
    path = folder.workdir(one) / "metrics.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    reason = f"{path}: expected the {len(lines)} lines that were written before the"
    with pytest.raises(UserError, match=re.escape(reason)):
        report(path.parent)
    flags = arguments(made, "4", f"^{one.name}", output=tmp_path / "output")
    result = forked.run("reproduce.py", flags)
    assert scripts.last_line(result) == f"error: 1 failed: {one.name}"
    assert f"damaged, so the run is taken up again: {reason}" in result.stderr
    page = (folder.results / "report.html").read_text()
    assert f"The run {one.name} is left out: {reason}" in page
    path.write_bytes(whole)
    assert running.in_own_process(running._run, one, folder, "auto", "") == 0
    assert records.read(path.parent).state == records.FINISHED


@pytest.mark.long
def test_a_run_that_is_only_evaluated_knows_how_many_pairs_it_had(copied):
    """As one that was stopped while it translated: a verdict hangs on it."""
    one, folder = copied(NAMES[0])
    path = folder.workdir(one) / records.FACTS
    before = json.loads(path.read_text())
    assert before["training_examples"] == 60
    path.write_text(json.dumps({**before, "finished": False}))
    (path.parent / "results/test-average-2.json").unlink()
    assert running.in_own_process(running._run, one, folder, "auto", "") == 0
    after = json.loads(path.read_text())
    assert after["finished"] and after["training_examples"] == 60
    assert running.is_done(one, folder)


def test_a_run_that_fails_leaves_its_reason(tmp_path):
    folder = Folder(tmp_path / "output", "smoke", make_data(tmp_path / "data"))
    one = tables.experiments(["3"], SMOKE)[0]
    workdir = folder.workdir(one)
    workdir.mkdir(parents=True)
    (workdir / "tensorboard").write_text("not a folder of ours")
    assert running._run(one, folder, "auto", "") == running.FAILED
    record = records.read(workdir)
    assert "expected an empty folder or a run" in record.failure
    assert record.state == records.FAILED
    page = report(folder.runs).read_text()
    assert "expected an empty folder or a run" in page


def test_the_papers_fidelity_is_the_run_of_the_other_tables():
    names = {one.name for one in tables.experiments(tables.ALL, SMOKE)}
    fidelities = tables.experiments(["fidelity"], SMOKE)
    shared = {one.choice for one in fidelities if one.name in names}
    assert shared == {""} and len({one.choice for one in fidelities}) == 7


@pytest.mark.long
def test_a_plan_is_printed_and_nothing_is_run(made, tmp_path):
    """It counts the weights that only the authors' code holds."""
    only = "ag_news/.*-1/(official/)?seed|multi30k-en-de/.*-1/seed"
    flags = arguments(made, "fidelity", only, output=tmp_path)
    flags += ["--dry_run", "--seeds=2", "--variants=transevolve-randomff-1"]
    result = forked.run("reproduce.py", flags)
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "runs").exists()
    lines = [line for line in result.stdout.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(rows) == 2 + 3 * 2 + 1
    parameters = {row[0]: int(row[2].replace(",", "")) for row in rows[2:-1]}
    assert all(row[1] == "to run" and row[3:5] == ["4", "16"] for row in rows[2:-1])
    assert float(rows[-1][-1]) < 5  # minutes
    name = "ag_news/transevolve-randomff-1"
    more = parameters[f"{name}/official/seed-0"] - parameters[f"{name}/seed-1"]
    # Unused singular values of each contraction, of width 16 and inner size 32.
    assert more == 2 * (32 - 16)


def test_the_evolution_of_a_text_is_drawn(made, tmp_path):
    run = made / "output/runs/smoke/listops/transevolve-randomff-1/seed-0"
    flags = ["--figure=evolution", f"--workdir={run}", "--text=[MAX 2 9 ]"]
    result = forked.run("reproduce.py", [*flags, f"--output={tmp_path}"])
    assert result.returncode == 0, result.stderr
    words, path = result.stdout.splitlines()
    assert words.startswith("Block 1: the mean weight of a token lies between")
    assert path == str(tmp_path / "evolution.png") and imread(path).std() > 0.01


def test_other_settings_in_the_folder_are_refused(made):
    """And nothing that was there is lost."""
    folder = Folder(made / "output", "smoke", made / "data")
    one = next(x for x in tables.experiments(["3"], SMOKE) if x.name == NAMES[1])
    other = one.changed({"train.batch_size": 8})
    with pytest.raises(UserError, match=r"--output: .*batch_size=4, not 8"):
        running.run_all([other], folder, "one_device")
    assert running.is_done(one, folder)


def test_no_data_is_no_error(tmp_path):
    flags = ["--table=3", "--scale=smoke", f"--output={tmp_path}"]
    result = forked.run("reproduce.py", flags)
    assert result.returncode == 0
    assert "4 runs: 0 finished before, 4 without data" in result.stderr
    assert "imdb was not run: --data_dir has no aclImdb" in result.stdout


def test_what_another_process_runs_is_waited_for(tmp_path, monkeypatch):
    experiments = tables.experiments(["3"], SMOKE)[:2]
    tried, codes = [], iter([running.LOCKED, 0, 0])
    folder = Folder(tmp_path / "output", "smoke", make_data(tmp_path / "data"))

    def run(function, experiment, *others):
        tried.append(experiment.variant)
        return next(codes)

    monkeypatch.setattr(running, "in_own_process", run)
    monkeypatch.setattr(running, "SECONDS_BETWEEN_LOOKS", 0)
    assert running.run_all(experiments, folder, "one_device") == []
    first, second = (one.variant for one in experiments)
    assert tried == [first, second, first]


def be_locked():
    raise LockedError("another process")


def test_a_job_that_is_locked_is_put_off():
    assert running.in_own_process(be_locked) == running.LOCKED


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--seeds=3"], "--seeds: not expected without --table"),
        (["--workdir=x"], "--workdir: not expected without --figure"),
        (["--table=3", "--text=x"], "--text: not expected beside --table"),
        (["--table=3", "--only=("], "--only=(: expected a regular expression, found"),
        (["--table=3", "--only=agnews"], "--only=agnews: expected a pattern that is"),
        (["--table=3", "--only=speed"], "--only=speed: expected a pattern that is"),
        (["--table=4", "--output=README.md"], "--output=README.md/results/laptop/repo"),
        (["--output=README.md"], "--output=README.md/report.md: expected a file that"),
        (
            ["--table=3", "--output=/proc/x"],
            "/proc/x/results/laptop/report.html: expec",
        ),
        (["--output=/proc/x"], "--output=/proc/x/report.md: expected a file that can"),
        (
            ["--report=README.md"],
            "--report=README.md/report.html: expected a file that",
        ),
        (
            ["--table=3", "--seeds=1000000000"],
            "--seeds: expected a whole number from 1",
        ),
        (["--table=3", "--data_dir=nowhere"], "--data_dir=nowhere: expected a folder"),
        (["--table=3", "--variants=x"], "--variants: expected some of"),
        (
            ["--table=fast-weights", "--variants=transformer"],
            "--variants: not expected beside --table=fast-weights",
        ),
        (["--table=2", "--tune"], "--tune: not expected beside --table=2"),
        (["--table=recall", "--seeds=2"], "--seeds: not expected beside --table=rec"),
        (
            ["--table=5"],
            "--table=5: expected one of 2, 3, 4, figure2, fidelity, blocks, imdb,",
        ),
        (["--table=3", "--scale=x"], "--scale=x: expected one of paper, laptop, smoke"),
        (["--figure=evolution"], "--workdir: expected beside --figure"),
    ],
)
def test_bad_flags_are_refused_in_a_line(flags, message):
    result = forked.run("reproduce.py", flags)
    assert message in scripts.last_line(result)
    assert "Traceback" not in result.stderr


def test_a_picture_that_cannot_be_written_is_refused_first(tmp_path):
    (tmp_path / "evolution.png").mkdir()
    flags = ["--figure=evolution", "--workdir=nowhere", "--text=x"]
    result = forked.run("reproduce.py", [*flags, f"--output={tmp_path}"])
    expected = f"error: --output={tmp_path}/evolution.png: expected a file that can be"
    assert scripts.last_line(result).startswith(expected)


def test_names_of_folders_that_are_no_text_go_out_as_they_came(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/runs-\xff"))
    write(folder / "a", config_of("imdb", "transformer"))
    (tmp_path / "out").mkdir()
    flags = [f"--report={folder}"]
    process = forked.start("reproduce.py", flags, tmp_path / "out")
    process.join(120)
    said = (tmp_path / "out/stdout").read_bytes()
    assert said == os.fsencode(folder) + b"/report.html\n"


def test_a_run_that_is_not_there_leaves_no_folder(tmp_path):
    flags = ["--figure=evolution", f"--workdir={tmp_path / 'typo'}", "--text=x"]
    assert "typo" in scripts.last_line(forked.run("reproduce.py", flags))
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize(
    "task, name",
    [
        ("listops", "listops-1000"),
        ("listops", "lra_release/listops-1000"),
        ("listops", "lra_release/lra_release/listops-1000"),
        ("wmt14_en_de", "wmt14_en_de"),
        ("wmt14_en_fr", "wmt14-fr-en"),
    ],
)
def test_data_of_the_paper_is_found(task, name, tmp_path):
    setting = SCALES["paper"].tasks[task]
    folder = Folder(tmp_path / "output", "paper", tmp_path)
    assert "data.dir" not in folder.data(setting)
    (tmp_path / name).mkdir(parents=True)
    found = folder.data(setting)
    assert found["data.source"] == "files"
    assert found["data.dir"] == str(tmp_path / name)
