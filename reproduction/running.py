"""Running experiments, each in a process of its own; what is done stays done."""

import json
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from common import cli, streams
from common.errors import UserError
from common.interruption import EXIT_CODE, SIGNALS, Interrupted
from common.json_files import read_object
from common.paths import check_writable_folder, write_whole
from common.processes import end_with_parent, ending
from common.progress import progress_bar
from evaluation.evaluate import evaluate_each
from reproduction import records
from reproduction.experiment import Experiment, Folder
from reproduction.facts import facts
from training import workdir as workdirs
from training.backends import describe
from training.lock import LockedError, locked
from training.tensorflow.strategy import make_strategy
from training.train import train_and_evaluate

LOCK = "reproduce.lock"
SECONDS_BETWEEN_LOOKS = 10  # at jobs that another process has
LOCKED, FAILED = 3, 1  # exit codes of a job's process
# A run has TensorFlow's devices alone, and may run out of memory alone. What is forked
# has imported TensorFlow and started nothing of it.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])

logger = logging.getLogger("transevolve")


class Job(NamedTuple):
    """What is to be done once, by whichever of the processes that share a folder.

    Attributes:
      name: by which `--only` chooses it.
      is_done: function that says whether it has been done.
      call: function that does it in a process of its own, with its arguments. It may
        raise a `LockedError` where another process does the job.
      explain: function of an exit code that says why the job failed.
    """

    name: str
    is_done: Callable[[], bool]
    call: tuple
    explain: Callable[[int], str] = ending


class Trainings(NamedTuple):
    """Rows that a table trains by itself, each into a file. Those that are there with
    the same settings stay.

    Attributes:
      path: what a row's file is called before its key, in a folder of the table's name.
      keys: of the rows, tuples.
      settings: that decide what is measured, besides the key.
      measure: function that can be pickled, of the entries of a key; a row.
    """

    path: Path
    keys: list[tuple]
    settings: dict
    measure: Callable[..., dict]

    def job(self) -> Job:
        """What trains the rows, once."""
        name = f"{self.path.parent.name}-{self.path.name}"
        return Job(name, self._are_there, (self._write,))

    def rows(self) -> dict[tuple, dict]:
        """Those that are there, by their keys."""
        rows = {key: measured(self._file(key), self.settings) for key in self.keys}
        return {key: row for key, row in rows.items() if row}

    def _file(self, key):
        return self.path.with_name("-".join(map(str, (self.path.name, *key))) + ".json")

    def _are_there(self):
        return len(self.rows()) == len(self.keys)

    def _write(self):
        with locked(self.path.parent, f"{self.path.name}.lock"):
            there = self.rows()
            missing = [key for key in self.keys if key not in there]
            for key in progress_bar(missing, unit=" trainings"):
                row = {**self.measure(*key), "settings": self.settings}
                write_json(self._file(key), {**row, "facts": facts()})


def measured(path: Path, settings: dict | None = None) -> dict:
    """What a file of results holds.

    Nothing if it is damaged or was measured with other settings, so that it is measured
    again.
    """
    try:
        content = read_object(path) or {}
    except UserError as error:
        _warn(f"left out: {error}")
        return {}
    if settings is not None:
        as_written = json.loads(json.dumps(settings))
        return content if content.get("settings") == as_written else {}
    return content


@cache  # once, however often the file is read
def _warn(message):
    logger.warning(message)


def do_all(jobs: list[Job], after_each: Callable[[], None]) -> list[str]:
    """Does what has not been done; another process may take its share.

    Args:
      jobs: without two of one name.
      after_each: is called after each job, and while others' jobs are waited for.

    Returns:
      Names of those that failed.

    Raises:
      Interrupted: after a signal, when the job in progress has ended.
    """
    left = [job for job in jobs if not job.is_done()]
    failed, start, done, total = [], time.monotonic(), 0, len(left)
    while left:
        put_off = []
        for job in left:
            done += 1
            if job.is_done():  # by another process, meanwhile
                continue
            logger.info("\n[%d/%d] %s", done, total, job.name)
            code = in_own_process(*job.call)
            if code == LOCKED:
                done -= 1
                put_off.append(job)
                continue
            if code != 0:
                failed.append(job.name)
                logger.info("failed: %s", job.explain(code))
            taken = time.monotonic() - start
            times = map(tqdm.format_interval, (taken, taken / done * (total - done)))
            logger.info("%d of %d in %s, about %s left", done, total, *times)
            after_each()
        if len(put_off) == len(left):
            logger.info("waiting for %d of other processes", len(put_off))
            after_each()
            time.sleep(SECONDS_BETWEEN_LOOKS)
        left = put_off
    return failed


def run_all(
    experiments: list[Experiment],
    folder: Folder,
    strategy: str,
    tpu: str = "",
    after_each: Callable[[], None] = lambda: None,
) -> list[str]:
    """Runs what has not been run, and returns the names of those that failed.

    A run that fails is recorded with its reason, and tried again the next time.

    Args:
      experiments: without two of one name.
      folder: where data and runs lie. What has no data is left out.
      strategy, tpu: as for `training.tensorflow.strategy.make_strategy`.
      after_each: see `do_all`.

    Raises:
      Interrupted: after a signal, when the run in progress has saved itself.
      UserError: if the folder cannot be written to or holds a run of other settings, or
        there is no such TPU.
    """
    check_writable_folder(folder.runs, "--output")
    folder.runs.mkdir(parents=True, exist_ok=True)
    with_data = [one for one in experiments if folder.data(one) is not None]
    left = [one for one in with_data if not is_done(one, folder)]
    logger.info(
        "%d runs: %d finished before, %d without data",
        len(experiments),
        len(with_data) - len(left),
        len(experiments) - len(with_data),
    )
    # Or else each run would fail by itself.
    is_on_tpu = tpu or strategy == "tpu"
    if left and is_on_tpu and in_own_process(_connect, strategy, tpu) != 0:
        raise UserError(f"--tpu={tpu}: expected a TPU that answers, see above")
    jobs = [
        Job(
            one.name,
            partial(is_done, one, folder),
            (_run, one, folder, strategy, tpu),
            partial(failure, folder.workdir(one)),
        )
        for one in left
    ]
    return do_all(jobs, after_each)


def is_done(experiment: Experiment, folder: Folder) -> bool:
    """Whether a run of these settings has been trained and evaluated.

    Raises:
      UserError: if its workdir holds one of other settings.
    """
    workdir = folder.workdir(experiment)
    try:
        record = records.read(workdir)
        if record is None:
            return False
        started = workdirs.read_config(workdir)
    except UserError:  # what a kill left, or damage: training mends it, or says so
        return False
    try:
        workdirs.check_same_run(folder.config(experiment), started, workdir)
    except UserError as error:
        raise UserError(f"--output: {error}") from None
    return experiment.is_finished(record)


def failure(workdir: Path, code: int) -> str:
    """Why a run's process ended with a code; written down if it could not do so."""
    reason = records.read_text(workdir / records.FAILURE).strip()
    return reason or _write_down(ending(code), workdir)


def _write_down(reason, workdir):
    """Writes why a run failed into its workdir; what there is to say of it."""
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        (workdir / records.FAILURE).write_text(reason + "\n")
    except OSError as error:  # a full disk, maybe
        reason += f"; nor could this be written down: {cli.explain(error)}"
    return reason


def in_own_process(function, *arguments) -> int:
    """The exit code of a process that calls a function.

    Signals are handed on to it, and it ends when this process does.

    Raises:
      Interrupted: after a signal, when it has ended.
    """
    received = []

    def hand_on(number, frame):
        received.append(number)
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(process.pid, number)

    process = CONTEXT.Process(target=_begin, args=(function, *arguments))
    # The new process inherits the mask, and lifts it when it is ready.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    process.start()
    # What this process was told to ignore, as by nohup, it goes on to ignore.
    before = {
        number: signal.signal(number, hand_on)
        for number in SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        process.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        name = signal.Signals(received[0]).name
        raise Interrupted(f"{name}: repeated, the command goes on from there")
    return process.exitcode


def _begin(function, *arguments):
    # Out of the terminal's group, so that a signal comes once, from the parent.
    os.setpgrp()
    end_with_parent()
    streams.secure()
    cli.log_to_stderr()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        sys.exit(function(*arguments))
    except (KeyboardInterrupt, Interrupted):
        sys.exit(EXIT_CODE)
    except LockedError as error:
        logger.info("put off: %s", error)
        sys.exit(LOCKED)
    except UserError as error:
        logger.error("error: %s", error)
        sys.exit(FAILED)


def _connect(strategy, tpu):
    make_strategy(strategy, tpu)


def _run(experiment, folder, strategy, tpu):
    """Trains and evaluates; an exit code. Why it fails is written down."""
    workdir = folder.workdir(experiment)
    try:
        with locked(workdir, LOCK), _logged(workdir):
            if not is_done(experiment, folder):  # by another process, just now
                (workdir / records.FAILURE).unlink(missing_ok=True)
                try:
                    records.read(workdir)
                except UserError as error:
                    logger.warning("damaged, so the run is taken up again: %s", error)
                _train_and_evaluate(experiment, folder, strategy, tpu)
        return 0
    except (LockedError, Interrupted):
        raise
    except Exception as error:
        _write_down(cli.explain(error) or f"{type(error).__name__}: {error}", workdir)
        return FAILED


def _train_and_evaluate(experiment, folder, strategy, tpu):
    workdir, config = folder.workdir(experiment), folder.config(experiment)
    start, seconds = time.monotonic(), _seconds_before(workdir)

    def keep(**more):
        taken = round(seconds + time.monotonic() - start, 1)
        content = {"seconds": taken, **facts(), **more, "config": config.to_dict()}
        write_json(workdir / records.FACTS, content)

    keep()  # from here on it is not finished
    strategy = make_strategy(strategy, tpu)
    at_validations = experiment.test_at_validations
    try:
        trained = train_and_evaluate(
            config, workdir, strategy, test_at_validations=at_validations
        )
        evaluate_each(workdir, experiment.evaluations, strategy)
    except BaseException:
        keep()
        raise
    # Another machine may have seen an earlier attempt end meanwhile.
    (workdir / records.FAILURE).unlink(missing_ok=True)
    keep(
        device=describe(strategy),
        training_examples=trained["training_examples"],
        finished=True,
    )


def _seconds_before(workdir):
    """What earlier attempts took, a killed one up to its last line of log."""
    path, log = workdir / records.FACTS, workdir / records.LOG
    try:
        seconds = (read_object(path, ["seconds"]) or {}).get("seconds")
    except UserError:
        seconds = None
    if seconds is None or not log.exists():
        return seconds or 0
    return seconds + max(0, log.stat().st_mtime - path.stat().st_mtime)


def write_json(path: Path, content) -> None:
    """Writes a file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=2) + "\n")


@contextmanager
def _logged(workdir):
    """Within it, what is logged goes to the run's file, too, and why it ends early."""
    handler = logging.FileHandler(workdir / records.LOG, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    try:
        yield
    except Interrupted as error:
        logger.info("stopped by %s", error)
        raise
    except Exception as error:
        if cli.explain(error) is None:
            logger.error("a fault of this code", exc_info=error)
        raise
    finally:
        logger.removeHandler(handler)
        handler.close()
