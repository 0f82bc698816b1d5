"""The loop of training: updates, validations, checkpoints and a log."""

import logging
import math
import statistics
import time
from dataclasses import dataclass
from typing import Any

from common.fields import parse_interval
from common.interruption import Interrupted
from common.progress import progress_bar
from data.batches import Batches
from data.rows import DataError
from training.metrics import NotFiniteError, Totals
from training.metrics_log import MetricsLog
from training.run_state import BEST, LAST, RESUME, RunState

# In nats; a hundred times as much is more than untrained models have.
SMALL_LOSS = 0.1

logger = logging.getLogger("transevolve")


@dataclass
class Loop:
    """Training from a state to the end, with validation, checkpoints and a log.

    Attributes:
      task: a `tasks.task.Task`.
      trainer, evaluator: of its model.
      training_batches, validation_batches: of the task.
      checkpoints: to save to.
      log: a `MetricsLog`; None where another worker writes.
      state: where to begin; it moves along.
      agreement: of the workers.
      profile: a `Profile` of some of its steps, or None.
      test_batches: evaluated at each validation, or None. They choose nothing.
    """

    task: Any
    trainer: Any
    evaluator: Any
    training_batches: Batches
    validation_batches: Batches
    checkpoints: Any
    log: MetricsLog | None
    state: RunState
    agreement: Any
    profile: Any = None
    test_batches: Batches | None = None

    def __post_init__(self):
        self.settings = self.task.config.train
        self._saved = (self.state.step, time.monotonic())
        self._saves = []
        self._lowest_loss = math.inf

    def run(self, interruption) -> None:
        """Trains; where it ends early, what was learned is saved first.

        Args:
          interruption: an `Interruption`, asked after each call of the trainer.

        Raises:
          Interrupted: after a signal, to this worker or another.
          NotFiniteError: from the trainer, or of a validation.
          DataError: for bad input that comes late in a stream.
        """
        state, start = self.state, time.monotonic()
        if self.profile is not None:
            self.profile.check(state.step, self._total)
        batches = self.training_batches.for_training(self.task.config.seed, state.step)
        try:
            with (
                self.training_batches.own_errors(),
                progress_bar(
                    desc=f"training {self.task.config.variant}",
                    total=self._total,
                    initial=state.step,
                    unit=" steps",
                    disable=not self.agreement.is_chief,
                ) as bar,
            ):
                self._train(batches, interruption, bar)
            if self._saves:
                logger.info(
                    "saved %d times, %.2f s each, %.1f %% of the time",
                    len(self._saves),
                    statistics.mean(self._saves),
                    100 * sum(self._saves) / (time.monotonic() - start),
                )
        except NotFiniteError as error:
            raise NotFiniteError(
                f"{error}; nothing was saved since step {self._saved[0]}; in another "
                f"workdir, {_advice(self.settings)}"
            ) from None
        except (Interrupted, DataError) as error:
            state.step = self.trainer.step
            if state.step > self._saved[0]:
                self._save(RESUME)
            if isinstance(error, Interrupted):
                name = interruption.name or "a signal to another worker"
                raise Interrupted(
                    f"{name}: saved at step {state.step}; repeated, the "
                    "command goes on from there"
                ) from None
            raise
        finally:
            if self.profile is not None:
                self.profile.close()
            if self.log is not None:
                self.log.close()

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

    def _train(self, batches, interruption, bar):
        state, settings = self.state, self.settings
        iterator = self.trainer.iterate(batches, self.training_batches.fillers)
        self.trainer.carry(state.carried)
        steps_per_loop = settings.steps_per_loop or self.trainer.steps_per_loop
        start, targets = time.monotonic(), 0

        def check_interruption(is_to_save=False):
            stop, save = self.agreement.any(bool(interruption), is_to_save)
            if stop:
                raise Interrupted
            return save

        while True:
            if self._is_to_validate():
                self._validate(check_interruption)
                start, targets = time.monotonic(), 0
            if state.step >= self._total:
                break
            stop = min(
                _next_multiple(state.step, self._validate_every),
                _next_multiple(state.step, settings.log_every),
                self._total,
            )
            num_steps = min(steps_per_loop, stop - state.step)
            if self.profile is not None:
                self.profile.at(state.step)
                num_steps = min(num_steps, self.profile.steps_left(state.step))
            new = self.trainer.train(iterator, num_steps)
            self._watch(new)
            state.totals = Totals(*map(sum, zip(state.totals, new, strict=True)))
            state.step += num_steps
            targets += new.targets
            bar.update(num_steps)
            bar.set_postfix_str(f"loss {new.loss / new.targets:.3f}", refresh=False)
            if state.step == stop:
                rate = {"learning_rate": self.trainer.learning_rate}
                speed = targets / (time.monotonic() - start)
                speeds = {
                    f"{self.task.unit}_per_second": speed,
                    "gradient_norm": self.trainer.gradient_norm,
                }
                self._log("train", {**state.totals.metrics(), **rate}, speeds)
                state.totals = Totals(0.0, 0.0, 0.0)
                start, targets = time.monotonic(), 0
            is_to_save = self._is_to_save() and not self._is_to_validate()
            if check_interruption(is_to_save):
                self._save(RESUME)

    def _watch(self, totals):
        """Warns, once, of a loss that is orders of magnitude above the lowest."""
        loss = totals.loss / totals.targets
        is_told = self.agreement.is_chief
        if is_told and loss > 100 * max(self._lowest_loss, SMALL_LOSS):
            logger.warning(
                "warning: step %d: the loss is %.3g, and was %.3g before; in another "
                "workdir, %s",
                self.trainer.step,
                loss,
                self._lowest_loss,
                _advice(self.settings),
            )
            self._lowest_loss = math.inf
        self._lowest_loss = min(self._lowest_loss, loss)

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

    def _validate(self, on_batch):
        state, task = self.state, self.task
        metrics = self._evaluated("validating", self.validation_batches, on_batch)
        if not math.isfinite(metrics["loss"]):
            raise NotFiniteError(
                f"step {state.step}: expected a finite validation loss, found "
                f"{metrics['loss']:g}"
            )
        # Before anything is kept: an interruption has all of it done again.
        if self.test_batches is not None:
            scores = self._evaluated("testing", self.test_batches, on_batch)
            if self.log is not None:
                self.log.write_test_scores(state.step, scores)
        self._log("validation", metrics)
        if self.agreement.is_chief:
            logger.info(
                "step %d: validation loss %.4f, accuracy %.4f",
                state.step,
                metrics["loss"],
                metrics["accuracy"],
            )
        state.validated_at = state.step
        score, best = metrics[task.metric], state.best_score
        if best is None or (score > best if task.higher_is_better else score < best):
            state.best_score = score
            self._save(BEST)
        self._save(LAST)

    def _evaluated(self, title, batches, on_batch):
        sums = self.evaluator.evaluate(
            batches, title, on_batch, leave=False, disable=not self.agreement.is_chief
        )
        return self.task.totals(sums).metrics()

    def _log(self, split, metrics, speeds=None):
        where = {}
        if "epochs" in self.settings:
            where = {"epoch": self.state.step / self._batches_per_epoch}
        if self.agreement.is_chief:
            self.log.write(split, self.state.step, {**where, **metrics}, speeds)

    def _save(self, kind):
        self.state.carried = self.trainer.carried()
        if self.agreement.is_chief:
            self.state.batches_per_epoch = self._batches_per_epoch
            self.state.examples_per_epoch = self.training_batches.num_examples
            self.state.logged_lines = self.log.lines
            self.state.log_sum = self.log.sum
            start = time.monotonic()
            self.trainer.check_weights()
            self.checkpoints.save(kind, self.state)
            self._saves.append(time.monotonic() - start)
        self._saved = (self.state.step, time.monotonic())


def _advice(settings):
    """What may help where a loss grows out of bounds, or out of the numbers."""
    advice = [
        "a lower --config.train.learning_rate_max may help",
        "--config.train.clip_norm=1",
    ]
    # Then the first moment may outlive the second, and be divided by ε alone.
    if settings.adam_beta_2 < settings.adam_beta_1**2:
        advice.append("a --config.train.adam_beta_2 above the square of adam_beta_1")
    if settings.adam_epsilon < 1e-9:
        advice.append("a larger --config.train.adam_epsilon")
    return ", or ".join(advice)


def _next_multiple(step, interval):
    return (step // interval + 1) * interval
