"""What runs will take, from a short probe of each kind on this machine."""

import json
import logging
import math
import time
from pathlib import Path

import tensorflow as tf

from common.errors import UserError
from common.json_files import check_numbers, read_object
from common.progress import progress_bar
from models import count_parameters
from models.fidelity import official_choices
from reproduction import survey
from reproduction.experiment import Experiment, Places
from reproduction.running import in_own_process, is_finished, write_json
from reproduction.sheet import Column, Sheet
from tasks import TASKS
from training import cli
from training.config import check
from training.tensorflow.evaluator import Evaluator
from training.tensorflow.strategy import make_strategy
from training.tensorflow.trainer import Trainer

NAME = "plan.json"
TO_RUN = "to run"
# Updates that are timed, after so many that warm up.
TIMED, WARM = 10, 2
# Weights and two moments of Adam, in float32.
BYTES_PER_PARAMETER = 12
COLUMNS = [
    Column("run", "run"),
    Column("state", "state"),
    Column("parameters", "parameters", 0),
    Column("steps", "steps", 0),
    Column("examples", "examples", 0),
    Column("disk_mb", "disk, MB", 0),
    Column("minutes", "minutes", 1),
]

logger = logging.getLogger("transevolve")


def plan(
    experiments: list[Experiment], places: Places, strategy: str, tpu: str = ""
) -> Sheet:
    """A row for each run, with an estimate of its time on this machine.

    Runs that differ only in seed, learning rate or choices take the same time: one of
    them is probed, by a few updates and a part of its evaluation.

    Raises:
      Interrupted: after a signal.
      UserError: if a kind of run cannot begin; what is wrong with each is logged.
    """
    places.results.mkdir(parents=True, exist_ok=True)
    states = {one.name: _state(one, places) for one in experiments}
    kinds = {}
    for experiment in experiments:
        if states[experiment.name] == TO_RUN:
            kinds.setdefault(_kind(experiment), experiment)
    probe = places.results / "probe.json"
    code = in_own_process(_probe, list(kinds.values()), places, strategy, tpu, probe)
    if code != 0:
        raise UserError("--dry_run: expected runs that can begin, see above")
    probed = json.loads(probe.read_text())
    probe.unlink()
    rows = []
    for experiment in experiments:
        row = {"run": experiment.name, "state": states[experiment.name]}
        if row["state"] == TO_RUN:
            row |= probed[_kind(experiment)]
        rows.append(row)
    left = [row for row in rows if row["state"] == TO_RUN]
    total = {"run": "all that are to run", "state": f"{len(left)} runs"}
    for key in ("steps", "examples", "disk_mb", "minutes"):
        total[key] = sum(row.get(key, 0) for row in left)
    # Of runs that have ended, the estimate from before they began.
    minutes = _estimates(places) | {row["run"]: row["minutes"] for row in left}
    write_json(places.results / NAME, minutes)
    notes = [
        "Minutes are those of this machine, estimated from "
        f"{TIMED} updates of each kind of run. Beam search is timed on an untrained "
        "model, whose translations are long. Tables 4 and all measure speed and memory "
        "afterwards, which is not in the sum. A run that was stopped counts whole. "
        "Disk is that of checkpoints."
    ]
    return Sheet("plan", "Plan", COLUMNS, [*rows, total], notes)


def accuracy_of_plan(
    experiments: list[Experiment], places: Places, runs: dict[str, survey.Run]
) -> str | None:
    """A sentence on how far the estimate was off; None where nothing was estimated.

    Args:
      experiments: of the plan, maybe.
      places: where that lies.
      runs: by the names of their experiments.
    """
    estimates = _estimates(places)
    planned = took = count = 0
    for experiment in experiments:
        run, minutes = runs.get(experiment.name), estimates.get(experiment.name)
        if run and run.facts.get("finished") and run.facts.get("seconds") and minutes:
            planned += minutes
            took += run.facts["seconds"] / 60
            count += 1
    if not count:
        return None
    return (
        f"{count} runs took {took:.1f} minutes. The plan said {planned:.1f}, "
        f"{100 * (planned / took - 1):+.0f} %."
    )


def _estimates(places):
    """{name of a run: minutes} of earlier plans."""
    path = places.results / NAME
    try:
        estimates = read_object(path) or {}
        check_numbers(estimates, estimates.keys(), path)
    except UserError as error:
        logger.warning("left out: %s", error)
        return {}
    return estimates


def _kind(experiment):
    setting = experiment.setting
    parts = [f"{setting.name}/{experiment.variant}", " and ".join(setting.splits)]
    # The one choice that comes with weights of its own.
    choices = official_choices(experiment.changes.get("model.fidelity", "paper"))
    return ", ".join([*parts, *choices & {"singular_values"}])


def _state(experiment, places):
    if places.data(experiment.setting) is None:
        return "no data"
    return "finished" if is_finished(experiment, places) else TO_RUN


def _probe(experiments, places: Places, strategy, tpu, path: Path):
    cli.log_to_stderr()
    # Each kind of run is traced, of which TensorFlow warns.
    tf.get_logger().setLevel("ERROR")
    strategy = make_strategy(strategy, tpu)
    found, problems = {}, []
    with progress_bar(experiments, desc="probing", unit=" kinds of run") as bar:
        for experiment in bar:
            try:
                found[_kind(experiment)] = _costs(experiment, places, strategy)
            except Exception as error:
                reason = error if isinstance(error, UserError) else cli.explain(error)
                if reason is None:
                    raise
                name = f"{experiment.setting.name}/{experiment.variant}"
                problems.append(f"{name}: {reason}")
    if problems:
        raise UserError("\n".join(problems))
    write_json(path, found)


def _costs(experiment, places, strategy):
    config = experiment.config(places.data(experiment.setting))
    check(config)
    start = time.monotonic()
    kind = TASKS[config.kind]
    task = kind(config, kind.make_tokenizer(config))
    train, settings = task.training_batches(), config.train
    with strategy.scope():
        model = task.build_model()
    trainer = Trainer(model, task, settings, strategy)
    iterator = trainer.iterate(train.train(config.seed), train.fillers)
    trainer.train(iterator, WARM)
    setup = time.monotonic() - start
    steps = settings.get("steps") or settings.epochs * train.num_batches
    every = settings.get("validate_every") or train.num_batches
    # The updates before have traced.
    start = time.monotonic()
    trainer.train(iterator, TIMED)
    update = (time.monotonic() - start) / TIMED
    validations = math.ceil(steps / every)
    validated = ["validation"]
    if experiment.setting.test_at_validations:
        validated.append("test")
    seconds = setup + steps * update
    evaluator = Evaluator(model, task, strategy)
    for split in validated:
        call, times = evaluator.sample(task.evaluation_batches(split))
        seconds += _seconds(call, validations * times)
    # Splits to evaluate are of similar sizes, so that one of them is enough to trace.
    # Averaging evaluates the mean of weights, and each checkpoint by itself.
    evaluations = sum(1 + average for _, average in experiment.setting.evaluations)
    call, times = task.evaluation_sample(model, experiment.setting.splits[-1], strategy)
    seconds += _seconds(call, evaluations * times)
    parameters = count_parameters(model)
    copies = settings.keep_checkpoints + 2  # the best one, and one to go on from
    return {
        "parameters": parameters,
        "steps": steps,
        "examples": steps * settings.batch_size,
        "disk_mb": BYTES_PER_PARAMETER * parameters * copies / 2**20,
        "minutes": seconds / 60,
    }


def _seconds(call, times):
    """What `times` calls take, of which the first one traces."""
    start = time.monotonic()
    call()
    traced = time.monotonic()
    call()
    once = time.monotonic() - traced
    return traced - start + max(0, times - 1) * once
