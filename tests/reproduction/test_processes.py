"""Runs, plans and measurements in processes of their own, with what can go wrong."""

import json
import os
import signal

import pytest

from common.errors import UserError
from common.interruption import Interrupted
from reproduction import measure, plan, records, running, tables
from reproduction.experiment import Folder
from reproduction.running import FAILED, LOCKED
from reproduction.scales import SCALES
from tests import forked, scripts
from tests.reproduction.made_data import make_data

pytestmark = pytest.mark.slow

SMOKE = SCALES["smoke"]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "output", "smoke", make_data(tmp_path / "data"))


def experiments(count=2):
    return tables.experiments(["3"], SMOKE)[:count]


@pytest.fixture
def hangup_is(request):
    before = signal.signal(signal.SIGHUP, request.param)
    yield
    signal.signal(signal.SIGHUP, before)


def hang_up(process):
    os.kill(process, signal.SIGHUP)


@pytest.mark.parametrize("hangup_is", [signal.SIG_IGN], indirect=True)
def test_what_nohup_ignores_stays_ignored(hangup_is):
    assert running.in_own_process(hang_up, os.getpid()) == 0


@pytest.mark.parametrize("hangup_is", [signal.SIG_DFL], indirect=True)
def test_a_terminal_that_closes_ends_it(hangup_is):
    with pytest.raises(Interrupted, match="SIGHUP: repeated, the command goes on"):
        running.in_own_process(hang_up, os.getpid())


@pytest.mark.script
@pytest.mark.long
def test_a_plan_names_every_kind_that_cannot_begin(folder, tmp_path):
    path = tmp_path / "data/ag_news_csv/train.csv"
    path.write_bytes(b"one column\n" + path.read_bytes())
    flags = {"table": 3, "scale": "smoke", "data_dir": tmp_path / "data"}
    flags = [f"--{name}={value}" for name, value in flags.items()]
    flags += [f"--output={tmp_path / 'output'}", "--dry_run"]
    flags += ["--only=ag_news|imdb/transformer/"]
    result = forked.run("reproduce.py", flags)
    expected = "error: --dry_run: expected runs that can begin, see above"
    assert scripts.last_line(result) == expected
    for one in experiments(count=4):
        name = f"{one.task}/{one.variant}: "
        assert (name in result.stderr) == (one.task == "ag_news")
    assert "train.csv:1: expected three columns" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder.results / plan.NAME).exists()


def test_how_far_a_plan_was_off(folder):
    first, second = experiments()
    assert plan.accuracy_of_plan(folder, []) is None
    folder.results.mkdir(parents=True)
    (folder.results / plan.NAME).write_text(json.dumps({first.name: 3.0}))
    for one in (first, second):
        workdir = folder.workdir(one)
        workdir.mkdir(parents=True)
        config = folder.config(one)
        facts = {"finished": True, "seconds": 120, "config": config.to_dict()}
        (workdir / records.FACTS).write_text(json.dumps(facts))
    runs = [
        records.read(folder.runs / one.name, folder.runs) for one in (first, second)
    ]
    sentence = plan.accuracy_of_plan(folder, runs)
    assert sentence == "1 runs took 2.0 minutes. The plan said 3.0, +50 %."
    for damage in ('{"a": "3"}', "[3]", '{"a'):
        (folder.results / plan.NAME).write_text(damage)
        assert plan.accuracy_of_plan(folder, runs) is None


def test_a_tpu_that_does_not_answer_ends_it_before_any_run(folder):
    with pytest.raises(UserError, match="--tpu=nowhere: expected a TPU that answers"):
        running.run_all(experiments(), folder, "auto", "nowhere")
    assert not any(folder.runs.iterdir())
    with pytest.raises(UserError, match="--tpu=: expected a TPU that answers"):
        running.run_all(experiments(), folder, "tpu")


def test_where_to_run_is_what_was_asked_for(folder, monkeypatch):
    (one,) = experiments(count=1)
    seen = []

    def in_own_process(function, *arguments):
        seen.append((function.__name__, *arguments[-2:]))
        return 0

    monkeypatch.setattr(running, "in_own_process", in_own_process)
    running.run_all([one], folder, "tpu", "pod")
    assert seen == [("_connect", "tpu", "pod"), ("_run", "tpu", "pod")]

    def make_strategy(*asked_for):
        raise UserError(" ".join(asked_for))

    monkeypatch.setattr(running, "make_strategy", make_strategy)
    assert running._run(one, folder, "mirrored", "pod") == FAILED
    assert records.read(folder.workdir(one)).failure == "mirrored pod"


def test_a_run_that_is_taken_up_again_is_not_finished(folder, monkeypatch):
    """As a process that is killed then leaves it."""
    (one,) = experiments(count=1)
    workdir = folder.workdir(one)
    workdir.mkdir(parents=True)
    (workdir / records.FACTS).write_text('{"seconds": 7, "finished": true}')

    def killed(*arguments, **others):
        found = json.loads((workdir / records.FACTS).read_text())
        assert "finished" not in found
        raise SystemExit

    monkeypatch.setattr(running, "train_and_evaluate", killed)
    with pytest.raises(SystemExit):
        running._train_and_evaluate(one, folder, "one_device", "")


def test_a_run_that_another_process_has_just_ended_is_not_repeated(folder, monkeypatch):
    (one,) = experiments(count=1)
    monkeypatch.setattr(running, "is_done", lambda *_: True)
    monkeypatch.setattr(running, "_train_and_evaluate", None)  # not called
    assert running._run(one, folder, "one_device", "") == 0


def test_what_a_killed_attempt_took_counts(folder):
    (one,) = experiments(count=1)
    workdir = folder.workdir(one)
    assert running._seconds_before(workdir) == 0
    workdir.mkdir(parents=True)
    config = folder.config(one).to_dict()
    facts, log = workdir / records.FACTS, workdir / records.LOG
    facts.write_text(json.dumps({"seconds": 7, "config": config}))
    assert running._seconds_before(workdir) == 7
    log.touch()
    os.utime(facts, (1000, 1000))
    # It was killed when it had logged for 90 seconds; or it wrote its facts last.
    for last, seconds in ((1090, 97), (990, 7)):
        os.utime(log, (last, last))
        assert running._seconds_before(workdir) == seconds


def test_why_a_run_could_not_begin_is_written_down(folder):
    (one,) = experiments(count=1)
    workdir = folder.workdir(one)
    workdir.mkdir(parents=True)
    (workdir / running.LOCK).write_text("a file of somebody else, with a long text")
    assert running._run(one, folder, "one_device", "") == FAILED
    reason = (workdir / records.FAILURE).read_text()
    assert "expected our lock, found another file" in reason


def test_why_a_run_failed_is_told_where_it_cannot_be_written_down(folder):
    (one,) = experiments(count=1)
    workdir = folder.workdir(one)
    workdir.mkdir(parents=True)
    (workdir / records.FAILURE).touch()  # as a full disk leaves it
    assert running.failure(workdir, 2) == "its process ended with code 2"
    (workdir / records.FAILURE).unlink()
    workdir.rmdir()
    workdir.write_text("a file of somebody else")
    found = running.failure(workdir, 2)
    assert "ended with code 2; nor could this be written down" in found
    assert running._run(one, folder, "one_device", "") == FAILED


def test_kinds_that_take_unlike_times_are_probed_apart():
    kinds = {}
    for one in tables.experiments(["figure2"], SCALES["laptop"]):
        kinds.setdefault(one.splits, set()).add(plan._kind(one))
    both, test = kinds["validation", "test"], kinds[("test",)]
    assert len(both) == 1 and not both & test


def measured(folder, name, models=("transevolve-randomff-1", "transformer-linear")):
    content = {"models": [*models, "transformer"], "rows": []}
    content |= {"machine": "EPYC, 2 cores", "device": "1 CPU"}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_benchmark.json").write_text(json.dumps(content))


def do_measure(scale, folder, names):
    jobs = [job for job in measure.jobs(scale, folder) if job.name in names]
    return running.do_all(jobs, lambda: None)


def test_another_process_that_measures_is_waited_for(tmp_path, monkeypatch):
    tried = []

    def run(function, name, *others):
        tried.append(name)
        if len(tried) == 2:  # the other process is done meanwhile
            measured(tmp_path, name)
        return LOCKED

    monkeypatch.setattr(running, "in_own_process", run)
    monkeypatch.setattr(running, "SECONDS_BETWEEN_LOOKS", 0)
    assert do_measure(SMOKE, tmp_path, ["speed"]) == []
    assert tried == ["speed"] * 2
    assert measure.device(tmp_path, "speed") == "1 CPU of EPYC, 2 cores"
    assert measure.device(tmp_path, "memory") is None


@pytest.mark.long
def test_speed_is_measured_in_a_process_of_its_own(tmp_path):
    benchmarks = {"speed": {"lengths": [16], "rounds": 1, "tokens_per_batch": 16}}
    alone = SMOKE._replace(
        variants={"transformer": {}}, systems={}, benchmarks=benchmarks
    )
    assert do_measure(alone, tmp_path, ["speed"]) == []
    (row, *_) = measure.rows(tmp_path, "speed")
    assert (row["model"], row["length"]) == ("transformer", 16)
    assert "1 CPU of" in measure.device(tmp_path, "speed")
    speed, _ = measure.jobs(alone, tmp_path)
    assert speed.is_done()


def test_a_measurement_that_fails_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "in_own_process", lambda *arguments: FAILED)
    measured(tmp_path, "memory")
    failed = do_measure(SMOKE, tmp_path, ["speed", "memory"])
    assert failed == ["speed"]  # memory had been measured


@pytest.mark.parametrize("damage", [b"", b'{"rows": [{"bench', b"\xff", b"[]"])
def test_a_damaged_measurement_is_named_and_measured_again(
    tmp_path, monkeypatch, caplog, damage
):
    path = tmp_path / "speed_benchmark.json"
    path.write_bytes(damage)
    running._warn.cache_clear()

    def run(function, name, scale, folder):
        assert measure.rows(folder, name) == [] and measure.device(folder, name) is None
        measured(folder, name)
        return 0

    monkeypatch.setattr(running, "in_own_process", run)
    assert do_measure(SMOKE, tmp_path, ["speed"]) == []
    assert caplog.text.count(f"left out: {path}: expected ") == 1
    assert measure.device(tmp_path, "speed") == "1 CPU of EPYC, 2 cores"


def test_fewer_models_are_not_measured_again(tmp_path, monkeypatch):
    measured(tmp_path, "speed")
    fewer = SMOKE._replace(variants={"transevolve-randomff-1": {}}, systems={})
    assert do_measure(fewer, tmp_path, ["speed"]) == []


def test_with_another_model_those_of_before_are_measured_too(tmp_path, monkeypatch):
    """Ratios are of one run, and no row is lost."""
    measured(tmp_path, "memory")
    other = SMOKE._replace(variants={"transevolve-fullff-2": {}}, systems={})

    def measure_memory(models, **timing):
        row = {"benchmark": "memory", "length": 16}
        return [{**row, "model": model} for model in models]

    monkeypatch.setattr(measure.memory, "measure", measure_memory)
    measure._measure("memory", other, tmp_path)
    names = ["transevolve-randomff-1", "transformer-linear", "transformer"]
    names.append("transevolve-fullff-2")
    assert [row["model"] for row in measure.rows(tmp_path, "memory")] == names
    # A model of another version is not measured again.
    measured(tmp_path, "memory", [*names[:2], "gone"])
    measure._measure("memory", other, tmp_path)
    assert [row["model"] for row in measure.rows(tmp_path, "memory")] == names
    # By another process, meanwhile.
    monkeypatch.setattr(measure.memory, "measure", None)
    measure._measure("memory", other, tmp_path)
