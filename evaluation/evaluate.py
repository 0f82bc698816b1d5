"""Evaluating what a workdir holds."""

import json
import logging
from collections.abc import Mapping

import tensorflow as tf

from common.errors import UserError
from common.paths import check_writable_folder, write_whole
from evaluation.run import load_run
from models import count_parameters
from tasks.task import Evaluation
from training.backends import announce

EVALUATION_SPLITS = ("validation", "test")

logger = logging.getLogger("transevolve")


def evaluate(
    workdir,
    split: str = "test",
    average_checkpoints: int = 0,
    decode: Mapping | None = None,
    attention: str | None = None,
    strategy: tf.distribute.Strategy | None = None,
    data_dir: str | None = None,
) -> tuple[dict, Evaluation]:
    """Evaluates a run, and writes `results/SPLIT.json`.

    With averaged checkpoints it is `results/SPLIT-average-N.json`, with other settings
    of beam search e.g. `results/SPLIT-beam_size-8.json`, with another form of attention
    e.g. `results/SPLIT-linear.json`. Where the task has answers to
    show, they stand beside it, one a line, with the ending .txt. Where nothing can be
    written, a warning says so, before the work if it is known then.

    Args:
      workdir: of the run.
      split: "test" or "validation".
      average_checkpoints, decode, attention, strategy, data_dir: see
        `evaluation.run.load_run`.

    Returns:
      What the file holds: task, variant, split, parameters and the task's scores; and
      all that the task found.

    Raises:
      UserError: for a bad argument, a workdir without a run, or validation data that
        is not the run's; a `DataError` for bad input.
    """
    if split not in EVALUATION_SPLITS:
        raise UserError(
            f"--split: expected one of {', '.join(EVALUATION_SPLITS)}, found {split}"
        )
    run = load_run(workdir, average_checkpoints, decode, attention, strategy, data_dir)
    announce(run.strategy)
    problem = None
    try:
        check_writable_folder(run.workdir / "results", "--workdir")
    except UserError as error:
        problem = error
        logger.warning("warning: %s; the result is not kept in a file", error)
    result, evaluation = _evaluate(run, split, average_checkpoints)
    name = result_name(split, average_checkpoints, decode, attention)
    try:
        if problem is None:
            _keep(run, name, result, evaluation)
    except OSError as error:
        logger.warning("warning: the result is not kept in a file: %s", error)
    return result, evaluation


def evaluate_each(
    workdir,
    evaluations: list[tuple[str, int]],
    strategy: tf.distribute.Strategy | None = None,
) -> None:
    """Evaluates several times; the model is made and traced once.

    Args:
      workdir: of the run.
      evaluations: (split, average_checkpoints) of each.
      strategy: see `evaluate`.
    """
    run = load_run(workdir, strategy=strategy)
    announce(run.strategy)
    for split, average_checkpoints in evaluations:
        if average_checkpoints:
            run.checkpoints.restore_average(average_checkpoints)
        else:
            run.checkpoints.restore_best()
        result, evaluation = _evaluate(run, split, average_checkpoints)
        _keep(run, result_name(split, average_checkpoints), result, evaluation)


def _evaluate(run, split, average_checkpoints):
    """Evaluates an open run with the weights that it has."""
    run.check_data(split)
    evaluation = run.task.evaluate(
        run.model,
        split,
        run.strategy,
        run.checkpoints.each_of_last(average_checkpoints),
    )
    result = {
        "task": run.config.task,
        "variant": run.config.variant,
        "split": split,
        "parameters": count_parameters(run.model),
        **evaluation.scores,
    }
    try:
        json.dumps(result, allow_nan=False)
    except ValueError:
        raise UserError(
            f"--workdir={run.workdir}: expected finite scores, found "
            f"{evaluation.scores}; the weights are of no use"
        ) from None
    return result, evaluation


def _keep(run, name, result, evaluation):
    results = run.workdir / "results"
    results.mkdir(exist_ok=True)
    if evaluation.answers is not None:
        text = "".join(line + "\n" for line in evaluation.answers)
        (results / f"{name}.txt").write_text(text, encoding="utf-8")
    write_whole(results / f"{name}.json", json.dumps(result) + "\n")


def result_name(
    split: str,
    average_checkpoints: int = 0,
    decode: Mapping | None = None,
    attention: str | None = None,
) -> str:
    """The name of the file of an evaluation, without ending; see `evaluate`."""
    parts = [split]
    if average_checkpoints:
        parts.append(f"average-{average_checkpoints}")
    if attention:
        parts.append(attention)
    parts += [f"{field}-{value}" for field, value in (decode or {}).items()]
    return "-".join(parts)
