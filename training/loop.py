"""Training a model from a config to a workdir."""

import logging
import sys
import time
from pathlib import Path

import keras
import tensorflow as tf

from common.errors import UserError
from common.progress import progress_bar
from data import tokenizers
from data.errors import DataError
from training import config as configuration
from training.checkpoints import Checkpoints
from training.evaluator import Evaluator
from training.metrics import Totals
from training.metrics_log import MetricsLog
from training.strategy import make_strategy, separate_dropout
from training.tasks import TASKS
from training.trainer import Trainer

logger = logging.getLogger("transevolve")


def train_and_evaluate(config, workdir, strategy: tf.distribute.Strategy | None = None):
    """Trains from the config, or from the workdir's last checkpoint, to the end.

    Each epoch, or every `train.checkpoint_every` steps, ends with an evaluation on
    validation data and a checkpoint; the best one is kept too. With one seed, on one
    machine, two runs are alike to the bit.

    Args:
      config: as from a file in `configs/`.
      workdir: folder of the run; docs/runs.md, "The workdir", lists what it holds.
      strategy: None for one device.

    Returns:
      The step reached, and the best validation score, by its name.

    Raises:
      UserError: for a bad config, or a workdir of another run; a `DataError` for bad
        input.
    """
    configuration.check(config)
    workdir = Path(workdir).expanduser()
    # Without a checkpoint there is nothing of a run to go on with, or to mix up.
    going_on = tf.train.latest_checkpoint(workdir / "checkpoints/last") is not None
    if going_on:
        configuration.check_same_run(config, workdir)
    strategy = strategy or make_strategy("one_device")
    kind = TASKS[config.kind]
    _check_shapes(config, kind.shapes(config), strategy)
    keras.utils.set_random_seed(config.seed)
    tf.config.experimental.enable_op_determinism()

    if going_on:
        tokenizer = tokenizers.load(workdir / "tokenizer")
    else:
        tokenizer = kind.make_tokenizer(config)
    task = kind(config, tokenizer)
    settings = config.train
    train = task.training_batches()
    validation = task.evaluation_batches("validation")
    if _is_tpu(strategy):
        _check_one_shape(validation.shapes)
    configuration.keep(config, workdir)
    tokenizers.save(tokenizer, workdir / "tokenizer")
    with strategy.scope():
        model = task.build_model()
    logger.info("%s: %d parameters", config.variant, model.count_params())
    trainer = Trainer(model, task.losses, settings, strategy)
    checkpoints = Checkpoints(
        workdir,
        model,
        trainer.optimizer,
        settings.keep_checkpoints,
        task.higher_is_better,
    )
    if checkpoints.resume():
        logger.info("going on from step %d", trainer.step)
        train.num_batches = checkpoints.batches_per_epoch or train.num_batches
    separate_dropout(model, strategy)
    evaluator = Evaluator(model, task.sums, strategy)
    try:
        with train.own_errors():
            _run(task, trainer, evaluator, train, validation, checkpoints, workdir)
    except DataError:
        # Bad input may come late in a stream: what was learned before it is kept.
        if trainer.step:
            checkpoints.last.save(trainer.step)
        raise
    best = {f"best_validation_{task.metric}": checkpoints.best_score}
    return {"step": trainer.step, **best}


def _check_shapes(config, shapes, strategy):
    if _is_tpu(strategy) and len(shapes) > 1:
        lengths = tuple(length for _, length in shapes)
        raise UserError(
            "--config.data.bucket_lengths: expected one length, as a TPU program has "
            f"one shape, found {lengths}; give ({lengths[-1]},)"
        )
    replicas = strategy.num_replicas_in_sync
    if any(rows % replicas for rows, _ in shapes):
        raise UserError(
            "--config.train.batch_size: expected batches of a multiple of the "
            f"{replicas} devices, found {config.train.batch_size}: batches of "
            f"{', '.join(str(rows) for rows, _ in shapes)} rows"
        )


def _check_one_shape(shapes):
    (_, length), *longer = shapes
    if longer:
        raise UserError(
            "--config.data.max_length: expected room for all validation data, as a TPU "
            f"program has one shape, found {length} tokens, and an example of up to "
            f"{longer[-1][1]}"
        )


def _is_tpu(strategy):
    return isinstance(strategy, tf.distribute.TPUStrategy)


def _run(task, trainer, evaluator, train, validation, checkpoints, workdir):
    config, settings = task.config, task.config.train
    step = trainer.step
    total = settings.get("steps") or settings.epochs * train.num_batches
    interval = settings.get("checkpoint_every") or train.num_batches
    log = MetricsLog(workdir, step)
    iterator = trainer.iterate(train.train(config.seed, step))
    with progress_bar(
        desc=f"training {config.variant}", total=total, initial=step, unit=" steps"
    ) as bar:
        while step < total:
            start = time.monotonic()
            pause = _next_multiple(step, interval)
            step = min(pause, _next_multiple(step, settings.log_every), total)
            totals = _advance(trainer, iterator, step, settings.steps_per_loop, bar)
            speed = totals.targets / (time.monotonic() - start)
            speed = {f"{task.unit}_per_second": speed}
            where = {"epoch": step / train.num_batches} if "epochs" in settings else {}
            rate = {"learning_rate": trainer.learning_rate}
            log.write("train", step, {**where, **totals.metrics(), **rate}, speed)
            if step in (pause, total):
                metrics = _validate(task, evaluator, validation)
                checkpoints.save(step, metrics[task.metric], train.num_batches)
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
        num_steps = min(steps_per_loop, stop - trainer.step)
        new = trainer.train(iterator, num_steps)
        totals = Totals(*map(sum, zip(totals, new, strict=True)))
        bar.update(num_steps)
        bar.set_postfix_str(f"loss {new.loss / new.targets:.3f}", refresh=False)
    return totals


def _validate(task, evaluator, validation):
    total = validation.num_batches
    with progress_bar(
        desc="validating", total=total, unit=" batches", leave=False
    ) as bar:
        return task.totals(evaluator.evaluate(validation, bar.update)).metrics()
