"""What runs will take, from a short probe of each kind on this machine."""

import json
import logging
import math
import time
from pathlib import Path

import tensorflow as tf

from common import cli
from common.errors import UserError
from common.json_files import check_numbers, read_object
from common.progress import progress_bar
from data.tokenizers import make_tokenizer
from models import count_parameters
from models.fidelity import official_choices
from reproduction.experiment import Experiment, Folder
from reproduction.records import Record
from reproduction.running import in_own_process, is_done, write_json
from reproduction.sheet import Column, Sheet
from tasks import TASKS
from training.backends import Evaluator, Trainer
from training.config import check
from training.tensorflow.strategy import make_strategy

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
SUMMED = ("steps", "examples", "disk_mb", "minutes")

logger = logging.getLogger("transevolve")


def plan(
    experiments: list[Experiment], folder: Folder, strategy: str, tpu: str = ""
) -> Sheet:
    """A row for each run, with an estimate of its time on this machine.

    Runs that differ only in seed, learning rate or choices take the same time: one of
    them is probed, by a few updates and a part of its evaluation.

    Raises:
      Interrupted: after a signal.
      UserError: if a kind of run cannot begin; what is wrong with each is logged.
    """
    folder.results.mkdir(parents=True, exist_ok=True)
    rows = [{"run": one.name, "state": _state(one, folder)} for one in experiments]
    kinds = {}
    for experiment, row in zip(experiments, rows, strict=True):
        if row["state"] == TO_RUN:
            kinds.setdefault(_kind(experiment), []).append((experiment, row))
    probes = [members[0][0] for members in kinds.values()]
    path = folder.results / "probe.json"
    if in_own_process(_probe, probes, folder, strategy, tpu, path) != 0:
        raise UserError("--dry_run: expected runs that can begin, see above")
    for costs, members in zip(
        json.loads(path.read_text()), kinds.values(), strict=True
    ):
        for _, row in members:
            row |= costs
    path.unlink()
    left = [row for row in rows if row["state"] == TO_RUN]
    total = {"run": "all that are to run", "state": f"{len(left)} runs"}
    total |= {key: sum(row[key] for row in left) for key in SUMMED}
    # Of runs that have ended, the estimate from before they began.
    minutes = _estimates(folder) | {row["run"]: row["minutes"] for row in left}
    write_json(folder.results / NAME, minutes)
    notes = [
        "Minutes are those of this machine, estimated from "
        f"{TIMED} updates of each kind of run. Beam search is timed on an untrained "
        "model, whose translations are long. Tables 4 and all measure speed and memory "
        "afterwards. That is not in the sum, nor are the trainings of retrieval and "
        "recall. A run that was stopped counts whole. Disk is that of checkpoints."
    ]
    return Sheet("plan", "Plan", COLUMNS, [*rows, total], notes)


def accuracy_of_plan(folder: Folder, records: list[Record]) -> str | None:
    """A sentence on how far the estimates in a folder were off; None where none of
    these runs was estimated."""
    estimates = _estimates(folder)
    times = [
        (estimates[record.name], record.facts["seconds"] / 60)
        for record in records
        if record.facts.get("finished")
        and record.facts.get("seconds")
        and estimates.get(record.name)
    ]
    if not times:
        return None
    planned, took = map(sum, zip(*times, strict=True))
    return (
        f"{len(times)} runs took {took:.1f} minutes. The plan said {planned:.1f}, "
        f"{100 * (planned / took - 1):+.0f} %."
    )


def _estimates(folder):
    """{name of a run: minutes} of earlier plans."""
    path = folder.results / NAME
    try:
        estimates = read_object(path) or {}
        check_numbers(estimates, estimates.keys(), path)
    except UserError as error:
        logger.warning("left out: %s", error)
        return {}
    return estimates


def _kind(experiment):
    # Of fidelities, singular values alone come with weights of their own.
    choices = official_choices(experiment.changes.get("model.fidelity", "paper"))
    has_more_weights = "singular_values" in choices
    shapes = {
        name: value
        for name, value in experiment.changes.items()
        if name.startswith(("model.", "data.")) and name != "model.fidelity"
    }
    return (
        experiment.task,
        experiment.variant,
        experiment.splits,
        has_more_weights,
        str(sorted(shapes.items())),
    )


def _state(experiment, folder):
    if folder.data(experiment) is None:
        return "no data"
    return "finished" if is_done(experiment, folder) else TO_RUN


def _probe(experiments, folder, strategy, tpu, path: Path):
    """Writes the costs of each experiment."""
    # Each kind of run is traced, of which TensorFlow warns, and reads its data.
    tf.get_logger().setLevel("ERROR")
    logger.setLevel(logging.WARNING)
    strategy = make_strategy(strategy, tpu)
    costs, problems = [], []
    with progress_bar(experiments, desc="probing", unit=" kinds of run") as bar:
        for experiment in bar:
            try:
                costs.append(_costs(experiment, folder.config(experiment), strategy))
            except Exception as error:
                reason = cli.explain(error)
                if reason is None:
                    raise
                problems.append(f"{experiment.task}/{experiment.variant}: {reason}")
    if problems:
        raise UserError("\n".join(problems))
    write_json(path, costs)


def _costs(experiment, config, strategy):
    check(config)
    start = time.monotonic()
    kind = TASKS[config.kind]
    task = kind(config, make_tokenizer(config.data))
    train, settings = task.training_batches(), config.train
    with strategy.scope():
        model = task.build_model()
    trainer = Trainer(model, task, settings, strategy)
    iterator = trainer.iterate(train.for_training(config.seed), train.fillers)
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
    if experiment.test_at_validations:
        validated.append("test")
    seconds = setup + steps * update
    evaluator = Evaluator(model, task, strategy)
    for split in validated:
        call, times = evaluator.sample(task.evaluation_batches(split))
        seconds += _seconds(call, validations * times)
    # Splits to evaluate are of similar sizes, so that one of them is enough to trace.
    # Averaging evaluates the mean of weights, and each checkpoint by itself.
    evaluations = sum(1 + average for _, average in experiment.evaluations)
    call, times = task.evaluation_sample(model, experiment.splits[-1], strategy)
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
