"""Training a classifier from a config to a workdir."""

import logging
import sys
import time
from pathlib import Path

import keras
import tensorflow as tf
from tqdm import tqdm

from data import tokenizers
from data.classification import ClassificationData, make_tokenizer
from models import build_classifier
from training import config as configuration
from training.checkpoints import Checkpoints
from training.errors import UserError
from training.evaluator import Evaluator
from training.metrics import Totals
from training.metrics_log import MetricsLog
from training.strategy import make_strategy, separate_dropout
from training.trainer import Trainer

logger = logging.getLogger("transevolve")


def train_and_evaluate(config, workdir, strategy: tf.distribute.Strategy | None = None):
    """Trains from the config, or from the workdir's last checkpoint, to the end.

    Each epoch ends with an evaluation on validation data and a checkpoint; the best
    one is kept too. With one seed, on one machine, two runs are alike to the bit.

    Args:
      config: as from a file in `configs/`.
      workdir: folder of the run; docs in README.md, "The workdir".
      strategy: None for one device.

    Returns:
      The step reached and the best validation accuracy.

    Raises:
      UserError: for a bad config, or a workdir of another run.
      data.DataError: for bad input.
    """
    configuration.check(config)
    workdir = Path(workdir)
    # Without a checkpoint there is nothing of a run to go on with, or to mix up.
    going_on = (workdir / "checkpoints").exists()
    if going_on:
        configuration.check_same_run(config, workdir)
    strategy = strategy or make_strategy("one_device")
    _check_strategy(config, strategy)
    keras.utils.set_random_seed(config.seed)
    tf.config.experimental.enable_op_determinism()

    if going_on:
        tokenizer = tokenizers.load(workdir / "tokenizer")
    else:
        tokenizer = make_tokenizer(config.data)
    dataset = ClassificationData(config.data, config.seed, tokenizer)
    settings = config.train
    train = dataset.batcher("train", settings.batch_size)
    validation = dataset.batcher("validation", settings.batch_size)
    configuration.keep(config, workdir)
    tokenizers.save(tokenizer, workdir / "tokenizer")
    with strategy.scope():
        model = build_classifier(
            config.model,
            tokenizer.vocabulary_size,
            len(dataset.class_names),
            config.seed,
        )
    logger.info("%s: %d parameters", config.variant, model.count_params())
    trainer = Trainer(model, settings, strategy)
    checkpoints = Checkpoints(
        workdir, model, trainer.optimizer, settings.keep_checkpoints
    )
    if checkpoints.resume():
        logger.info("going on from step %d", trainer.step)
    separate_dropout(model, strategy)
    evaluator = Evaluator(model, strategy)
    _run(trainer, evaluator, train, validation, checkpoints, config, workdir)
    best = float(checkpoints.best_accuracy)
    return {"step": trainer.step, "best_validation_accuracy": best}


def _check_strategy(config, strategy):
    buckets = tuple(config.data.bucket_lengths)
    if isinstance(strategy, tf.distribute.TPUStrategy) and len(buckets) > 1:
        raise UserError(
            "--config.data.bucket_lengths: expected one length, as a TPU program has "
            f"one shape, found {buckets}; give ({buckets[-1]},)"
        )
    replicas = strategy.num_replicas_in_sync
    if config.train.batch_size % replicas:
        raise UserError(
            f"--config.train.batch_size: expected a multiple of the {replicas} "
            f"devices, found {config.train.batch_size}"
        )


def _run(trainer, evaluator, train, validation, checkpoints, config, workdir):
    settings = config.train
    step = trainer.step
    total = settings.steps or settings.epochs * train.num_batches
    log = MetricsLog(workdir, step)
    iterator = trainer.iterate(train.train(config.seed, step))
    examples_per_step = train.num_examples / train.num_batches
    with progress_bar(
        f"training {config.variant}",
        total=round(total * examples_per_step),
        initial=round(step * examples_per_step),
    ) as bar:
        while step < total:
            start = time.monotonic()
            epoch_end = _next_multiple(step, train.num_batches)
            step = min(epoch_end, _next_multiple(step, settings.log_every), total)
            totals = _advance(trainer, iterator, step, settings.steps_per_loop, bar)
            speed = totals.examples / (time.monotonic() - start)
            where = {"epoch": step / train.num_batches}
            rate = {"learning_rate": trainer.learning_rate}
            log.write("train", step, {**where, **totals.metrics(), **rate}, speed)
            if step in (epoch_end, total):
                metrics = _validate(evaluator, validation)
                checkpoints.save(step, metrics["accuracy"])
                log.write("validation", step, {**where, **metrics})
                bar.write(
                    f"step {step}: validation loss {metrics['loss']:.4f}, "
                    f"accuracy {metrics['accuracy']:.4f}",
                    file=sys.stderr,
                )
    log.close()


def _next_multiple(step, interval):
    return (step // interval + 1) * interval


def _advance(trainer, iterator, stop, steps_per_loop, bar):
    """Trains up to step `stop`; returns the totals of the way there."""
    totals = Totals(0, 0, 0)
    while trainer.step < stop:
        new = trainer.train(iterator, min(steps_per_loop, stop - trainer.step))
        totals = Totals(*map(sum, zip(totals, new, strict=True)))
        bar.update(new.examples)
        bar.set_postfix_str(f"loss {new.loss / new.examples:.3f}", refresh=False)
    return totals


def _validate(evaluator, validation):
    total = validation.num_examples
    with progress_bar("validating", total=total, leave=False) as bar:
        return evaluator.evaluate(validation, bar.update)[0].metrics()


def progress_bar(description, **arguments):
    """A tqdm bar in examples; quieter where no person watches."""
    return tqdm(
        desc=description,
        unit=" examples",
        unit_scale=True,
        mininterval=0.5 if sys.stderr.isatty() else 10,
        **arguments,
    )
