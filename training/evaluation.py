"""Evaluating what a workdir holds."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from data import tokenizers
from data.progress import progress_bar
from training import config as configuration
from training.checkpoints import Checkpoints
from training.errors import UserError
from training.evaluator import Evaluator
from training.strategy import make_strategy
from training.tasks import ClassificationTask, make_task
from training.translation_evaluation import evaluate_translation

EVALUATION_SPLITS = ("validation", "test")


def evaluate(
    workdir,
    split: str = "test",
    average_checkpoints: int = 0,
    decode: Mapping | None = None,
) -> tuple[dict, str]:
    """Evaluates the best checkpoint of a run, and writes `results/SPLIT.json`.

    With averaged checkpoints it is `results/SPLIT-average-N.json`, with other settings
    of beam search e.g. `results/SPLIT-beam_size-8.json`. A translation's hypotheses
    stand beside it, one a line, with the ending .txt.

    Args:
      workdir: of the run.
      split: "test" or "validation".
      average_checkpoints: if above 0, the mean of the weights of so many last
        checkpoints instead of the best one.
      decode: fields of the config's `decode` part to use instead of the run's.

    Returns:
      The result: task, variant, split, examples, parameters, and accuracy and loss, or
      BLEU and chrF; and Markdown for people.

    Raises:
      UserError: for a bad argument or a workdir without a run.
      data.DataError: for bad input.
    """
    if split not in EVALUATION_SPLITS:
        raise UserError(
            f"--split: expected one of {', '.join(EVALUATION_SPLITS)}, found {split}"
        )
    workdir = Path(workdir)
    task, model, checkpoints, strategy = restore(workdir, decode)
    if average_checkpoints:
        checkpoints.restore_average(average_checkpoints)
    else:
        checkpoints.restore_best(workdir)
    name = f"{split}-average-{average_checkpoints}" if average_checkpoints else split
    name += "".join(f"-{field}-{value}" for field, value in (decode or {}).items())
    results = workdir / "results"
    results.mkdir(exist_ok=True)
    if isinstance(task, ClassificationTask):
        scores, report = _classify(task, model, split, strategy)
    else:
        kept = checkpoints.each_of_last(average_checkpoints)
        scores, report = evaluate_translation(
            task, model, split, kept, results / f"{name}.txt"
        )
    result = {
        "task": task.config.task,
        "variant": task.config.variant,
        "split": split,
        "parameters": model.count_params(),
        **scores,
    }
    (results / f"{name}.json").write_text(json.dumps(result) + "\n")
    return result, report


def restore(workdir, decode: Mapping | None = None):
    """The task of a run, its model as initialised, its checkpoints, and a strategy.

    Args:
      workdir: of the run.
      decode: as for `evaluate`.

    Raises:
      UserError: for a workdir without a run, or with settings that it does not have.
    """
    workdir = Path(workdir)
    config = configuration.read(workdir)
    if decode:
        if "decode" not in config:
            raise UserError(
                f"--{next(iter(decode))}: expected a translation run, found "
                f"{config.task}"
            )
        config.decode.update(decode)
        configuration.check(config)
    task = make_task(config, tokenizers.load(workdir / "tokenizer"))
    strategy = make_strategy("one_device")
    with strategy.scope():
        model = task.build_model()
    return task, model, Checkpoints(workdir, model), strategy


def _classify(task, model, split, strategy):
    batcher = task.evaluation_batches(split)
    with progress_bar(
        desc=f"evaluating {split}", total=batcher.num_batches, unit=" batches"
    ) as bar:
        sums = Evaluator(model, task.sums, strategy).evaluate(batcher, bar.update)
    totals = task.totals(sums)
    table = per_class_table(sums[1], task.data.class_names)
    return {"examples": totals.targets, **totals.metrics()}, table


def per_class_table(confusion: np.ndarray, class_names) -> str:
    """Markdown: examples, precision, recall and F1 of each class."""
    rows = ["| class | examples | precision | recall | F1 |", "|---|--:|--:|--:|--:|"]
    for index, name in enumerate(class_names):
        right = confusion[index, index]
        examples = confusion[index].sum()
        precision = right / max(confusion[:, index].sum(), 1)
        recall = right / max(examples, 1)
        f1 = 2 * right / max(examples + confusion[:, index].sum(), 1)
        scores = " | ".join(f"{100 * x:.1f}" for x in (precision, recall, f1))
        rows.append(f"| {name} | {examples} | {scores} |")
    return "\n".join(rows)
