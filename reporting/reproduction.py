"""The main job: all models on one task, side by side, beside the paper's numbers."""

import json
from pathlib import Path

import numpy as np

from configs import listops
from configs.common import VARIANTS
from data import ClassificationData
from reporting.published import ACCURACY
from reporting.tables import markdown_table
from training.evaluation import evaluate
from training.loop import logger, train_and_evaluate
from training.throughput import relative_speeds

BASELINE = "transformer"
# Short expressions and narrow models: what two cores train in minutes.
LAPTOP_SCALE = {
    "data.min_length": 5,
    "data.max_length": 40,
    "data.bucket_lengths": (16, 24, 32, 40),
    "data.max_depth": 4,
    "data.max_arguments": 5,
    "data.train_examples": 16000,
    "data.validation_examples": 1000,
    "data.test_examples": 2000,
    "model.hidden_dim": 128,
    "model.ffn_dim": 512,
    "train.epochs": 2,
    "train.learning_rate_max": 0.2,
    "train.warmup_steps": 100,
    "train.log_every": 50,
}
DIFFERENCES = (
    "These are laptop-scale figures: expressions of 6 to 39 symbols (the paper: 500 to "
    "2,000), 16,000 training examples (96,000), 2 epochs (15), width 128 (256; the "
    "Transformer's 512), 1 seed (5), on a CPU (TPU v3-8). They show that everything "
    "runs and learns; they do not stand in for the paper's."
)


def reproduce(workdir) -> str:
    """Trains, evaluates and times every variant; finished parts are not done again.

    Args:
      workdir: folder with one run a variant below it.

    Returns:
      A Markdown table and a line that says how its scale differs from the paper's.
    """
    workdir = Path(workdir)
    configs = {variant: _config(variant, workdir) for variant in VARIANTS}
    results = {}
    for number, (variant, config) in enumerate(configs.items(), start=1):
        logger.info("\n[%d/%d] %s", number, len(configs), variant)
        results[variant] = _train(config, workdir / variant)
    logger.info("\ntiming training steps side by side")
    speeds = _speeds(configs, workdir)
    data = _data(configs[BASELINE], workdir)
    targets = data.batcher("test", 1).split.targets
    majority = 100 * np.bincount(targets).max() / len(targets)
    rows = [
        [
            variant,
            f"{result['parameters']:,}",
            f"{100 * result['accuracy']:.1f}",
            f"{speeds[variant]:.2f}",
            ACCURACY["listops"][variant],
        ]
        for variant, result in results.items()
    ]
    header = [
        "model",
        "parameters",
        "test accuracy %",
        "training speed / Transformer",
        "paper's accuracy %",
    ]
    return (
        f"{markdown_table(header, rows)}\n\n"
        f"Always answering the most frequent class: {majority:.1f} %.\n{DIFFERENCES}"
    )


def _config(variant, workdir):
    config = listops.get_config(variant)
    config.update_from_flattened_dict(
        {**LAPTOP_SCALE, "data.cache_dir": str(workdir / "cache")}
    )
    return config


def _data(config, workdir):
    tokenizer = workdir / BASELINE / "tokenizer"
    return ClassificationData(config.data, config.seed, tokenizer)


def _train(config, workdir):
    finished = workdir / "results" / "test.json"
    if finished.exists():
        logger.info("finished before: %s", finished)
        return json.loads(finished.read_text())
    train_and_evaluate(config, workdir)
    return evaluate(workdir)[0]


def _speeds(configs, workdir):
    path = workdir / "speeds.json"
    if not path.exists():
        config = configs[BASELINE]
        batcher = _data(config, workdir).batcher("train", config.train.batch_size)
        vocabulary_size = _data(config, workdir).tokenizer.vocabulary_size
        speeds = relative_speeds(configs, batcher, vocabulary_size, BASELINE)
        path.write_text(json.dumps(speeds, indent=2) + "\n")
    return json.loads(path.read_text())
