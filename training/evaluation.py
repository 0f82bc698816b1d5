"""Evaluating what a workdir holds."""

import json
from pathlib import Path

import numpy as np

from data import tokenizers
from data.classification import EVALUATION_SPLITS, ClassificationData
from models import build_classifier
from training import config as configuration
from training.checkpoints import Checkpoints
from training.errors import UserError
from training.evaluator import Evaluator
from training.loop import progress_bar
from training.strategy import make_strategy


def evaluate(workdir, split: str = "test", average_checkpoints: int = 0):
    """Evaluates the best checkpoint of a run, and writes `results/SPLIT.json`.

    With averaged checkpoints it is `results/SPLIT-average-N.json`.

    Args:
      workdir: of the run.
      split: "test" or "validation".
      average_checkpoints: if above 0, the mean of the weights of so many last
        checkpoints instead of the best one.

    Returns:
      The result: task, variant, split, examples, parameters, accuracy, loss; and the
      confusion matrix, a NumPy array, with the class names.

    Raises:
      UserError: for a bad argument or a workdir without a run.
      data.DataError: for bad input.
    """
    if split not in EVALUATION_SPLITS:
        raise UserError(
            f"--split: expected one of {', '.join(EVALUATION_SPLITS)}, found {split}"
        )
    workdir = Path(workdir)
    config = configuration.read(workdir)
    tokenizer = tokenizers.load(workdir / "tokenizer")
    dataset = ClassificationData(config.data, config.seed, tokenizer)
    strategy = make_strategy("one_device")
    with strategy.scope():
        model = build_classifier(
            config.model,
            tokenizer.vocabulary_size,
            len(dataset.class_names),
            config.seed,
        )
    checkpoints = Checkpoints(workdir, model)
    if average_checkpoints:
        checkpoints.restore_average(average_checkpoints)
    else:
        checkpoints.restore_best(workdir)
    batcher = dataset.batcher(split, config.train.batch_size)
    with progress_bar(f"evaluating {split}", total=batcher.num_examples) as bar:
        totals, confusion = Evaluator(model, strategy).evaluate(batcher, bar.update)
    result = {
        "task": config.task,
        "variant": config.variant,
        "split": split,
        "examples": int(totals.examples),
        "parameters": model.count_params(),
        **totals.metrics(),
    }
    results = workdir / "results"
    results.mkdir(exist_ok=True)
    name = f"{split}-average-{average_checkpoints}" if average_checkpoints else split
    (results / f"{name}.json").write_text(json.dumps(result) + "\n")
    return result, confusion, dataset.class_names


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
