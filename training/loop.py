"""Training a model from a config to a workdir."""

import logging
import sys
import time
from pathlib import Path

import keras
import tensorflow as tf

from common.errors import UserError
from common.fields import parse_interval
from common.progress import progress_bar
from data.errors import DataError
from training import config as configuration
from training import workdir as workdirs
from training.checkpoints import BEST, LAST, RESUME, Checkpoints, RunState
from training.evaluator import Evaluator
from training.interruption import Interrupted, catch_signals
from training.lock import locked
from training.metrics import Totals
from training.metrics_log import MetricsLog
from training.strategy import make_strategy, separate_dropout
from training.tasks import TASKS
from training.trainer import Trainer

logger = logging.getLogger("transevolve")


def train_and_evaluate(config, workdir, strategy: tf.distribute.Strategy | None = None):
    """Trains from the config, or from the workdir's last checkpoint, to the end.

    Each epoch, or every `train.validate_every` steps, ends with an evaluation on
    validation data and a checkpoint; the best one is kept too. With one seed, on one
    machine, two runs are alike to the bit, and so is one that was stopped and went on.

    Args:
      config: as from a file in `configs/`.
      workdir: folder of the run; docs/runs.md, "The workdir", lists what it holds.
      strategy: None for one device.

    Returns:
      The step reached, and the best validation score, by its name.

    Raises:
      UserError: for a bad config, or a workdir of another run or process; a
        `DataError` for bad input; `Interrupted` after a signal.
    """
    configuration.check(config)
    strategy = strategy or make_strategy("one_device")
    _check_shapes(config, TASKS[config.kind].shapes(config), strategy)
    workdir = Path(workdir).expanduser()
    with locked(workdir):
        return _train(config, workdir, strategy)


def _train(config, workdir, strategy):
    kind = TASKS[config.kind]
    going_on = workdirs.has_started(workdir)
    if going_on:
        kept, tokenizer = workdirs.read(workdir)
        workdirs.check_same_run(config, kept, workdir)
    keras.utils.set_random_seed(config.seed)
    tf.config.experimental.enable_op_determinism()
    if not going_on:
        tokenizer = kind.make_tokenizer(config)
    task = kind(config, tokenizer)
    train = task.training_batches()
    validation = task.evaluation_batches("validation")
    if _is_tpu(strategy):
        _check_one_shape(validation.shapes)
    if not going_on or workdirs.differences(config, kept):
        workdirs.keep(config, tokenizer, workdir)
    with strategy.scope():
        model = task.build_model()
    logger.info("%s: %d parameters", config.variant, model.count_params())
    trainer = Trainer(model, task.losses, config.train, strategy)
    keep = config.train.keep_checkpoints
    checkpoints = Checkpoints(workdir, model, trainer.optimizer, keep)
    checkpoints.clean()
    state = RunState()
    if going_on:
        state = checkpoints.resume()
        logger.info("going on from step %d", state.step)
        train.num_batches = state.batches_per_epoch or train.num_batches
    else:
        checkpoints.save(RESUME, state)
    separate_dropout(model, strategy)
    evaluator = Evaluator(model, task.sums, strategy)
    log = MetricsLog(workdir, state.logged_lines)
    run = _Run(task, trainer, evaluator, train, validation, checkpoints, log, state)
    with catch_signals() as interruption:
        run.train(interruption)
    log.close()
    best = {f"best_validation_{task.metric}": state.best_score}
    return {"step": state.step, **best}


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


class _Run:
    """Training from a state to the end. Attributes are its parts."""

    def __init__(
        self, task, trainer, evaluator, train, validation, checkpoints, log, state
    ):
        self.task = task
        self.trainer = trainer
        self.evaluator = evaluator
        self.training_batches = train
        self.validation_batches = validation
        self.checkpoints = checkpoints
        self.log = log
        self.state = state
        self.settings = task.config.train
        self._saved = (state.step, time.monotonic())

    def train(self, interruption) -> None:
        """Trains; where it ends early, what was learned is saved first."""
        state = self.state
        try:
            with (
                self.training_batches.own_errors(),
                progress_bar(
                    desc=f"training {self.task.config.variant}",
                    total=self._total,
                    initial=state.step,
                    unit=" steps",
                ) as bar,
            ):
                self._train(interruption, bar)
        except (Interrupted, DataError) as error:
            state.step = self.trainer.step
            if state.step > self._saved[0]:
                self._save(RESUME)
            if isinstance(error, Interrupted):
                raise Interrupted(
                    f"{interruption.name}: saved at step {state.step}; repeated, the "
                    "command goes on from there"
                ) from None
            raise

    @property
    def _total(self):
        settings = self.settings
        return settings.get("steps") or settings.epochs * self._batches_per_epoch

    @property
    def _batches_per_epoch(self):
        return self.training_batches.num_batches

    @property
    def _validate_every(self):
        return self.settings.get("validate_every") or self._batches_per_epoch

    def _train(self, interruption, bar):
        state, settings = self.state, self.settings
        batches = self.training_batches.train(self.task.config.seed, state.step)
        iterator = self.trainer.iterate(batches)
        start, targets = time.monotonic(), 0

        def check_interruption(num_batches=0):
            if interruption:
                raise Interrupted

        while True:
            if self._is_to_validate():
                self._validate(bar, check_interruption)
                start, targets = time.monotonic(), 0
            if state.step >= self._total:
                break
            stop = min(
                _next_multiple(state.step, self._validate_every),
                _next_multiple(state.step, settings.log_every),
                self._total,
            )
            num_steps = min(settings.steps_per_loop, stop - state.step)
            new = self.trainer.train(iterator, num_steps)
            state.totals = Totals(*map(sum, zip(state.totals, new, strict=True)))
            state.step += num_steps
            targets += new.targets
            bar.update(num_steps)
            bar.set_postfix_str(f"loss {new.loss / new.targets:.3f}", refresh=False)
            if state.step == stop:
                speed = {
                    f"{self.task.unit}_per_second": targets / (time.monotonic() - start)
                }
                rate = {"learning_rate": self.trainer.learning_rate}
                self._log("train", {**state.totals.metrics(), **rate}, speed)
                state.totals = Totals(0.0, 0.0, 0.0)
                start, targets = time.monotonic(), 0
            check_interruption()
            if self._is_to_save() and not self._is_to_validate():
                self._save(RESUME)

    def _is_to_validate(self):
        state = self.state
        if state.step in (0, state.validated_at):
            return False
        return state.step % self._validate_every == 0 or state.step == self._total

    def _is_to_save(self):
        number, unit = parse_interval(self.settings.checkpoint_every)
        step, when = self._saved
        if unit == "steps":
            return self.state.step // number > step // number
        return time.monotonic() - when >= 60 * number

    def _validate(self, bar, on_batch):
        state, task = self.state, self.task
        total = self.validation_batches.num_batches
        with progress_bar(
            desc="validating", total=total, unit=" batches", leave=False
        ) as batches:

            def on_progress(num_batches):
                batches.update(num_batches)
                on_batch()

            sums = self.evaluator.evaluate(self.validation_batches, on_progress)
        metrics = task.totals(sums).metrics()
        self._log("validation", metrics)
        bar.write(
            f"step {state.step}: validation loss {metrics['loss']:.4f}, "
            f"accuracy {metrics['accuracy']:.4f}",
            file=sys.stderr,
        )
        state.validated_at = state.step
        score, best = metrics[task.metric], state.best_score
        if best is None or (score > best if task.higher_is_better else score < best):
            state.best_score = score
            self._save(BEST)
        self._save(LAST)

    def _log(self, split, metrics, speed=None):
        where = {}
        if "epochs" in self.settings:
            where = {"epoch": self.state.step / self._batches_per_epoch}
        self.log.write(split, self.state.step, {**where, **metrics}, speed)

    def _save(self, kind):
        self.state.batches_per_epoch = self._batches_per_epoch
        self.state.logged_lines = self.log.lines
        self.checkpoints.save(kind, self.state)
        self._saved = (self.state.step, time.monotonic())


def _next_multiple(step, interval):
    return (step // interval + 1) * interval
