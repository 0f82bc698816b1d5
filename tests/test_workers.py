"""Several workers on this machine train as one process does."""

import json
import socket
import time
from contextlib import ExitStack

import pytest

from tests import forked, scripts, translation
from tests.scripts import metrics

pytestmark = [pytest.mark.slow, pytest.mark.script]

# Replicas draw dropout masks of their own: no curve would be the same.
CLASSIFIER = {
    "model.dropout": 0.0,
    "data.bucket_lengths": "(24,)",
    "train.epochs": 2,
    "train.log_every": 5,
    "train.steps_per_loop": 5,
}
TRANSLATOR = {
    "model.dropout": 0.0,
    "train.steps": 20,
    "data.bucket_lengths": "(24,)",
    "train.validate_every": 10,
    "train.log_every": 5,
    "train.steps_per_loop": 5,
}


def start_workers(count, name, arguments, folder, absent=()):
    """The processes of a script, each with a folder of its streams."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("localhost", 0))
        addresses = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    started = []
    for index in set(range(count)) - set(absent):
        streams = folder / str(index)
        streams.mkdir(parents=True)
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": addresses}, "task": task})
        environment = {"TF_CONFIG": config}
        process = forked.start(name, arguments, streams, environment=environment)
        started.append((process, streams))
    return started


def finish(started, limit=300):
    """Waits for processes; what each printed."""
    end = time.monotonic() + limit
    for process, _ in started:
        process.join(max(0, end - time.monotonic()))
    hung = [streams for process, streams in started if process.exitcode is None]
    for process, _ in started:
        process.kill()
    assert not hung, [(streams / "stderr").read_text() for streams in hung]
    return [
        (process.exitcode, *((streams / x).read_text() for x in ("stdout", "stderr")))
        for process, streams in started
    ]


def arguments_of(task, folder, workdir):
    if task == "classifier":
        return scripts.train_arguments(workdir, folder, **CLASSIFIER)
    return translation.train_arguments(workdir, folder, "transformer", **TRANSLATOR)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A function from a task to its data and a run of one process."""
    runs = {}

    def run(task):
        if task not in runs:
            folder = tmp_path_factory.mktemp(task)
            if task == "translator":
                translation.write(folder)
            result = forked.run("train.py", arguments_of(task, folder, folder / "one"))
            assert result.returncode == 0, result.stderr
            runs[task] = folder
        return runs[task]

    return run


def check_alike(one, many):
    assert len(one) == len(many)
    for first, second in zip(one, many, strict=True):
        assert (first["step"], first["split"]) == (second["step"], second["split"])
        assert first["loss"] == pytest.approx(second["loss"], abs=1e-4)


@pytest.mark.parametrize(
    "task, count",
    [
        ("translator", 2),
        pytest.param("classifier", 3, marks=pytest.mark.long),
        pytest.param("classifier", 2, marks=pytest.mark.long),
        pytest.param("translator", 3, marks=pytest.mark.long),
    ],
)
def test_workers_train_as_one_process(task, count, alone, tmp_path):
    folder = alone(task)
    arguments = [
        *arguments_of(task, folder, tmp_path / "run"),
        "--strategy=multi_worker",
    ]
    results = finish(start_workers(count, "train.py", arguments, tmp_path))
    for code, _, stderr in results:
        assert code == 0, stderr
    check_alike(metrics(folder / "one"), metrics(tmp_path / "run"))
    assert len({stdout for _, stdout, _ in results}) == 1
    assert f"worker 1 of {count}" in results[0][2]
    assert not list((tmp_path / "run").rglob("*unfinished*"))


@pytest.mark.long
def test_examples_and_dropout_differ_between_workers(alone, tmp_path):
    folder = alone("classifier")
    results = finish(
        start_workers(3, "tests/training/worker.py", [str(folder)], tmp_path)
    )
    for code, _, stderr in results:
        assert code == 0, stderr
    found = [json.loads(stdout) for _, stdout, _ in results]
    dealt = [tuple(row) for one in found for row in one["dealt"]]
    assert len(dealt) == len(set(dealt)) == found[0]["epoch"]
    masks = [tuple(mask) for one in found for mask in one["masks"]]
    assert len(masks) == len(set(masks)) == 3


# The first one is the chief, which holds what the others meet at.
@pytest.mark.long
@pytest.mark.parametrize("dead", [1, 0])
def test_when_a_worker_dies_the_others_stop_and_all_go_on(dead, alone, tmp_path):
    folder = alone("classifier")
    often = {"train.checkpoint_every": "5 steps", "train.steps_per_loop": 1}
    arguments = [
        *arguments_of("classifier", folder, tmp_path / "run"),
        *(f"--config.{name}={value}" for name, value in often.items()),
        "--strategy=multi_worker",
    ]
    started = start_workers(2, "train.py", arguments, tmp_path / "first")
    while not (tmp_path / "run/checkpoints/resume/5").exists():
        time.sleep(0.01)
        if any(process.exitcode is not None for process, _ in started):
            pytest.fail(str(finish(started, limit=0)))
    started[dead][0].kill()
    code, _, stderr = finish(started, limit=120)[1 - dead]
    assert code == 1 and "Traceback" not in stderr
    assert "a worker was lost" in stderr.splitlines()[-1]
    results = finish(start_workers(2, "train.py", arguments, tmp_path / "second"))
    assert [code for code, _, _ in results] == [0, 0], results[0][2]
    assert "going on from step " in results[0][2]
    check_alike(metrics(folder / "one"), metrics(tmp_path / "run"))


def test_an_absent_worker_is_not_waited_for_without_end(tmp_path):
    script = tmp_path / "wait.py"
    script.write_text(
        "from common import cli\nfrom training.tensorflow import workers\n"
        "workers.START_LIMIT = 3\n"
        "cli.run(workers.connect)\n"
    )
    started = start_workers(3, str(script), [], tmp_path, absent=[1])
    for code, _, stderr in finish(started, limit=60):
        assert code == 1
        message = "error: TF_CONFIG: expected all workers within 3 s, found no answer"
        assert stderr.startswith(f"{message} from localhost:")
        assert len(stderr.splitlines()) == 1 and "," not in stderr.removeprefix(message)
