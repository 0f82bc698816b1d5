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
from pathlib import Path

from tqdm import tqdm

from common import streams
from common.errors import UserError
from common.json_files import read_object
from common.paths import write_whole
from common.processes import end_with_parent, ending
from common.writable import check_writable_folder
from evaluation.evaluate import evaluate_each
from reproduction import survey
from reproduction.experiment import Experiment, Places
from reproduction.facts import facts
from training import cli
from training import workdir as workdirs
from training.cluster.interruption import EXIT_CODE, SIGNALS, Interrupted
from training.cluster.lock import LockedError, locked
from training.tensorflow.strategy import describe, make_strategy
from training.train import train_and_evaluate

LOCK = "reproduce.lock"
SECONDS_BETWEEN_LOOKS = 10  # at runs that another process has
LOCKED, FAILED = 3, 1  # exit codes of a run's process
# A run has TensorFlow's devices alone, and may run out of memory alone. What is forked
# has imported TensorFlow and started nothing of it.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])

logger = logging.getLogger("transevolve")


def run_all(
    experiments: list[Experiment],
    places: Places,
    strategy: str,
    tpu: str = "",
    after_each: Callable[[], None] = lambda: None,
) -> list[Experiment]:
    """Runs what has not been run; another process may take its share.

    A run that fails is recorded with its reason, and tried again the next time.

    Args:
      experiments: without two of one name.
      places: where data and runs lie. What has no data is left out.
      strategy, tpu: as for `training.tensorflow.strategy.make_strategy`.
      after_each: is called after each run, and while others' runs are waited for.

    Returns:
      Those that failed.

    Raises:
      Interrupted: after a signal, when the run in progress has saved itself.
      UserError: if the folder cannot be written to or holds a run of other settings, or
        there is no such TPU.
    """
    check_writable_folder(places.runs, "--output")
    places.runs.mkdir(parents=True, exist_ok=True)
    with_data = [one for one in experiments if places.data(one.setting) is not None]
    left = [one for one in with_data if not is_finished(one, places)]
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
    failed, start, done = [], time.monotonic(), 0
    total = len(left)
    while left:
        put_off = []
        for experiment in left:
            if is_finished(experiment, places):  # by another process, meanwhile
                done += 1
                continue
            logger.info("\n[%d/%d] %s", done + 1, total, experiment.name)
            code = in_own_process(_run, experiment, places, strategy, tpu)
            if code == LOCKED:
                put_off.append(experiment)
                continue
            done += 1
            if code != 0:
                failed.append(experiment)
                logger.info("failed: %s", failure(experiment, places, code))
            elapsed = time.monotonic() - start
            logger.info(
                "%d of %d runs in %s, about %s left",
                done,
                total,
                tqdm.format_interval(elapsed),
                tqdm.format_interval(elapsed / done * (total - done)),
            )
            after_each()
        if len(put_off) == len(left):
            logger.info("waiting for %d runs of other processes", len(put_off))
            after_each()
            time.sleep(SECONDS_BETWEEN_LOOKS)
        left = put_off
    return failed


def is_finished(experiment: Experiment, places: Places) -> bool:
    """Whether a run of these settings has been trained and evaluated.

    Raises:
      UserError: if its workdir holds one of other settings.
    """
    workdir = places.runs / experiment.name
    try:
        run = survey.read(workdir)
        if run is None:
            return False
        kept = workdirs.read_config(workdir)
    except UserError:  # what a kill left, or damage: training mends it, or says so
        return False
    config = experiment.config(places.data(experiment.setting))
    try:
        workdirs.check_same_run(config, kept, workdir)
    except UserError as error:
        raise UserError(f"--output: {error}") from None
    return experiment.is_finished(run)


def failure(experiment: Experiment, places: Places, code: int) -> str:
    """Why a run's process ended with a code; written down if it could not do so."""
    path = places.runs / experiment.name / survey.FAILURE
    if reason := survey.read_text(path).strip():
        return reason
    reason = ending(code)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(reason + "\n")
    except OSError as error:
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
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        sys.exit(function(*arguments))
    except KeyboardInterrupt:
        sys.exit(EXIT_CODE)
    except UserError as error:
        logger.error("error: %s", error)
        sys.exit(FAILED)


def _connect(strategy, tpu):
    cli.log_to_stderr()
    make_strategy(strategy, tpu)


def _run(experiment, places, strategy, tpu):
    """Trains and evaluates; an exit code."""
    workdir = places.runs / experiment.name
    cli.log_to_stderr()
    try:
        with locked(workdir, LOCK), _logged(workdir):
            if is_finished(experiment, places):  # by another process, just now
                return 0
            (workdir / survey.FAILURE).unlink(missing_ok=True)
            _name_damage(workdir)
            try:
                _train_and_evaluate(experiment, places, workdir, strategy, tpu)
                return 0
            except Interrupted as error:
                logger.info("stopped by %s", error)
                return EXIT_CODE
            except Exception as error:
                return _record(error, workdir)
    except LockedError as error:
        logger.info("put off: %s", error)
        return LOCKED
    except (UserError, OSError) as error:  # of the lock's file, or the log's
        return _record(error, workdir)


def _name_damage(workdir):
    try:
        survey.read(workdir)
    except UserError as error:
        logger.warning("damaged, so the run is taken up again: %s", error)


def _record(error, workdir):
    """Writes down why a run failed; an exit code."""
    reason = str(error) if isinstance(error, UserError) else cli.explain(error)
    if reason is None:
        logger.error("a fault of this code", exc_info=error)
        reason = f"{type(error).__name__}: {error}"
    try:
        (workdir / survey.FAILURE).write_text(reason + "\n")
    except OSError as failed:  # a full disk, maybe
        logger.error("%s; nor could this be written down: %s", reason, failed)
    return FAILED


def _train_and_evaluate(experiment, places, workdir, strategy, tpu):
    config = experiment.config(places.data(experiment.setting))
    start, seconds = time.monotonic(), _seconds_before(workdir)

    def keep(**facts):
        taken = round(seconds + time.monotonic() - start, 1)
        content = {"seconds": taken, **facts, "config": config.to_dict()}
        write_json(workdir / survey.FACTS, content)

    keep(**facts())  # from here on it is not finished
    strategy = make_strategy(strategy, tpu)
    try:
        trained = train_and_evaluate(
            config,
            workdir,
            strategy,
            test_at_validations=experiment.setting.test_at_validations,
        )
        evaluate_each(workdir, experiment.setting.evaluations, strategy)
    except BaseException:
        keep(**facts())
        raise
    # Another machine may have seen an earlier attempt end meanwhile.
    (workdir / survey.FAILURE).unlink(missing_ok=True)
    keep(
        **facts(),
        device=describe(strategy),
        training_examples=trained["training_examples"],
        finished=True,
    )


def _seconds_before(workdir):
    """What earlier attempts took, a killed one up to its last line of log."""
    facts, log = workdir / survey.FACTS, workdir / survey.LOG
    try:
        seconds = (read_object(facts, ["seconds"]) or {}).get("seconds")
    except UserError:
        return 0
    if seconds is None:
        return 0
    lost = log.stat().st_mtime - facts.stat().st_mtime if log.exists() else 0
    return seconds + max(0, lost)


def write_json(path: Path, content) -> None:
    """Writes a file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=2) + "\n")


@contextmanager
def _logged(workdir):
    """Within it, what is logged goes to the run's file, too."""
    handler = logging.FileHandler(workdir / survey.LOG, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
