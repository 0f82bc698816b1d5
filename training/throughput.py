"""Training speed of several models, measured side by side."""

import statistics
import time

import keras
import tensorflow as tf
from tqdm import tqdm

from models import build_classifier
from training.strategy import make_strategy
from training.trainer import Trainer


def relative_speeds(
    configs: dict,
    batcher,
    vocabulary_size: int,
    baseline: str,
    rounds: int = 7,
    steps_per_round: int = 10,
) -> dict:
    """Speed of each model's training step over the baseline's, on equal batches.

    The models take turns, so a machine that slows down slows all of them; each
    round gives one ratio a model, and the median is returned. The first round warms
    up and does not count.

    Args:
      configs: {name: config}; the models to compare.
      batcher: where batches come from.
      vocabulary_size: of the batches' ids.
      baseline: the name whose speed is 1.
      rounds: rounds that count.
      steps_per_round: updates a model takes in a turn.

    Returns:
      {name: ratio}; above 1 is faster than the baseline.
    """
    # As in training.
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(0)
    strategy = make_strategy("one_device")
    runs = {}
    for name, config in configs.items():
        with strategy.scope():
            classes = int(batcher.split.targets.max()) + 1
            model = build_classifier(config.model, vocabulary_size, classes)
        trainer = Trainer(model, config.train, strategy)
        runs[name] = trainer, trainer.iterate(batcher.train(seed=0))
    ratios = {name: [] for name in runs}
    for counted in tqdm([False] + [True] * rounds, desc="timing", unit=" rounds"):
        seconds = {}
        for name, (trainer, iterator) in runs.items():
            start = time.monotonic()
            trainer.train(iterator, steps_per_round)
            seconds[name] = time.monotonic() - start
        if counted:
            for name in runs:
                ratios[name].append(seconds[baseline] / seconds[name])
    return {name: statistics.median(values) for name, values in ratios.items()}
