"""Trainings that are killed, told to stop, or started twice lose nothing."""

import contextlib
import os
import random
import re
import signal
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import (
    EventAccumulator,
)

from common import streams
from common.interruption import EXIT_CODE
from tests import forked, scripts, translation

pytestmark = [pytest.mark.slow, pytest.mark.script]

# Half of the time goes to validating and saving.
OFTEN = {
    "train.checkpoint_every": "2 steps",
    "train.log_every": 4,
    "train.steps_per_loop": 1,
    "train.keep_checkpoints": 2,
}
LISTOPS = {
    **OFTEN,
    "data.bucket_lengths": "(24,)",
    "train.epochs": 1,
    "train.validate_every": 10,
}
# Time for a signal to arrive before the end.
LONG = {
    **LISTOPS,
    "train.epochs": 10,
    "train.validate_every": 50,
    "train.checkpoint_every": "1000 steps",
}
NUMBERS = {
    **OFTEN,
    "data.bucket_lengths": "(24,)",
    "train.steps": 20,
    "train.validate_every": 10,
}


@pytest.fixture(scope="module", params=["classifier", "translator"])
def trained(request, tmp_path_factory):
    """A function from a workdir to train.py's arguments, and a run's own workdir."""
    folder = tmp_path_factory.mktemp("trained")
    if request.param == "translator":
        translation.write(folder)

    def arguments(workdir):
        if "classifier" in request.param:
            changes = LONG if "long" in request.param else LISTOPS
            return scripts.train_arguments(workdir, folder, **changes)
        return translation.train_arguments(workdir, folder, "transformer", **NUMBERS)

    result = forked.run("train.py", arguments(folder / "whole"))
    assert result.returncode == 0, result.stderr
    return arguments, folder / "whole"


def saving(workdir):
    return logged(workdir) and any(workdir.glob("checkpoints/*/unfinished-*"))


def validating(workdir):
    """A step is logged that is to be validated, and its validation is not."""
    with contextlib.suppress(FileNotFoundError, ValueError):  # it is being written
        rows = scripts.metrics(workdir)
        return rows and rows[-1]["split"] == "train" and rows[-1]["step"] % 10 == 0
    return False


def training_for(seconds):
    start = None

    def trains(workdir):
        nonlocal start
        if start is None and (workdir / "metrics.jsonl").exists():
            start = time.monotonic()
        return start is not None and time.monotonic() - start > seconds

    return trains


def kill(process, workdir, when):
    """Kills a process when something is so; returns whether it came to that."""
    while process.exitcode is None:
        if when(workdir):
            process.kill()
            process.join()
            return True
    return False


def contents(workdir):
    """What two runs must have in common: every tensor of every checkpoint, the log, and
    each step once in TensorBoard."""
    found = {"log": (workdir / "metrics.jsonl").read_text()}
    for split in ("train", "validation"):
        rows = [row for row in scripts.metrics(workdir) if row["split"] == split]
        events = EventAccumulator(str(workdir / "tensorboard" / split), {"tensors": 0})
        steps = [event.step for event in events.Reload().Tensors("loss")]
        assert steps == [row["step"] for row in rows]
    for kind in ("last", "best"):
        for folder in (workdir / "checkpoints" / kind).iterdir():
            reader = tf.train.load_checkpoint(str(folder / "weights"))
            for key in reader.get_variable_to_shape_map():
                value = np.asarray(reader.get_tensor(key))
                found[f"{kind}/{folder.name}/{key}"] = value.tobytes()
    return found


def check_kills(trained, tmp_path, moments):
    arguments, whole = trained
    workdir, streams = tmp_path / "run", tmp_path / "streams"
    streams.mkdir()
    kills = 0
    for moment in moments:
        process = forked.start("train.py", arguments(workdir), streams)
        if kill(process, workdir, moment):
            kills += 1
        else:
            assert process.exitcode == 0, (streams / "stderr").read_text()
    result = forked.run("train.py", arguments(workdir))
    assert result.returncode == 0, result.stderr
    assert contents(workdir) == contents(whole)
    assert not list(workdir.rglob("unfinished*"))
    return kills


@pytest.mark.long
@pytest.mark.parametrize("trained", ["classifier", "translator"], indirect=True)
def test_killed_while_saving_and_while_validating(trained, tmp_path):
    assert check_kills(trained, tmp_path, [saving, validating]) == 2


@pytest.mark.long
def test_killed_twenty_times(trained, tmp_path, record_property):
    generator = random.Random(0)
    kills = part = 0
    while kills < 20:
        moments = [training_for(generator.uniform(0, 2)) for _ in range(2)]
        moments += [saving, validating]
        generator.shuffle(moments)
        (tmp_path / str(part)).mkdir()
        kills += check_kills(trained, tmp_path / str(part), moments)
        part += 1
    record_property("kills", f"{kills}, in {part} runs")


@pytest.mark.long
@pytest.mark.parametrize("trained", ["long classifier"], indirect=True)
def test_signals_save_and_stop(trained, tmp_path):
    arguments, whole = trained
    workdir, step = tmp_path / "run", 0
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        process = forked.start("train.py", arguments(workdir), tmp_path)
        while process.exitcode is None:
            if logged(workdir) > step:
                os.kill(process.pid, getattr(signal, name))
                break
            time.sleep(0.01)
        process.join()
        said = (tmp_path / "stderr").read_text()
        assert process.exitcode == EXIT_CODE
        assert said.splitlines()[-1].startswith(f"stopped by {name}: saved at step ")
        assert f"going on from step {step}" in said or not step
        step = int(re.search(r"saved at step (\d+)", said)[1])
    result = forked.run("train.py", arguments(workdir))
    assert f"going on from step {step}" in result.stderr
    assert contents(workdir) == contents(whole)


def logged(workdir):
    """The last logged step."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return max((row["step"] for row in scripts.metrics(workdir)), default=0)
    return 0


@pytest.mark.parametrize("trained", ["classifier"], indirect=True)
def test_a_reader_of_the_log_that_ends_stops_no_training(trained, tmp_path):
    """As `2>&1 | head -1` does; the result is not delivered, and that is told."""
    arguments, whole = trained
    os.mkfifo(tmp_path / "stdout")
    (tmp_path / "stderr").symlink_to("stdout")
    process = forked.start("train.py", arguments(tmp_path / "run"), tmp_path)
    with open(tmp_path / "stdout") as log:
        assert log.readline()
    process.join()
    assert process.exitcode == streams.EXIT_CODE
    assert contents(tmp_path / "run") == contents(whole)


@pytest.mark.parametrize("trained", ["classifier"], indirect=True)
def test_a_second_writer_stops_at_once(trained, tmp_path):
    arguments, _ = trained
    process = forked.start("train.py", arguments(tmp_path / "run"), tmp_path)
    while not (tmp_path / "run/metrics.jsonl").exists():
        assert process.exitcode is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGSTOP)
    result = forked.run("train.py", arguments(tmp_path / "run"))
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.join()
    message = scripts.last_line(result)
    assert "that no other process writes to, found process" in message
    assert str(process.pid) in message
