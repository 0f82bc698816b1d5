"""The last checkpoints of a run, and the best one."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tensorflow as tf

from common.errors import UserError


class Checkpoints:
    """Checkpoints below `workdir/checkpoints`: `last/` and `best/`.

    Args:
      workdir: of the run.
      model: what evaluation needs.
      optimizer: None where nothing is trained; only then may it be missing.
      keep: how many of the last to keep.
      higher_is_better: of two scores.
    """

    def __init__(
        self,
        workdir: Path,
        model,
        optimizer=None,
        keep: int = 1,
        higher_is_better: bool = True,
    ):
        self.model = model
        self._higher_is_better = higher_is_better
        worst = -math.inf if higher_is_better else math.inf
        self._best_score = tf.Variable(worst, dtype=tf.float64)
        self._batches_per_epoch = tf.Variable(0, dtype=tf.int64)
        # Variables are named one by one: TensorFlow's own walk through a Keras 3
        # model misses layers within lists, and the states of dropout seeds.
        parts = {
            "model": _named(model),
            "best_score": self._best_score,
            "batches_per_epoch": self._batches_per_epoch,
        }
        if optimizer is not None:
            parts["optimizer"] = _named(optimizer)
        self._whole = optimizer is not None
        self._checkpoint = tf.train.Checkpoint(**parts)
        folder = Path(workdir) / "checkpoints"
        self.last = self._manager(folder / "last", keep)
        self.best = self._manager(folder / "best", 1)

    def _manager(self, folder, keep):
        return tf.train.CheckpointManager(self._checkpoint, str(folder), keep)

    @property
    def best_score(self) -> float:
        """Of the best checkpoint."""
        return float(self._best_score)

    @property
    def batches_per_epoch(self) -> int | None:
        """What the last checkpoint knew of it."""
        return int(self._batches_per_epoch) or None

    def save(self, step: int, score: float, batches_per_epoch: int | None) -> None:
        """Saves to `last`, and to `best` if no earlier score was as good.

        Args:
          step: of the checkpoint.
          score: on validation data.
          batches_per_epoch: of the training data; None if not known yet.
        """
        self._batches_per_epoch.assign(batches_per_epoch or 0)
        best = self.best_score
        if score > best if self._higher_is_better else score < best:
            self._best_score.assign(score)
            self.best.save(step)
        self.last.save(step)

    def resume(self) -> bool:
        """Restores the last checkpoint; returns whether there was one."""
        if self.last.latest_checkpoint:
            self._restore(self.last.latest_checkpoint)
        return bool(self.last.latest_checkpoint)

    def restore_best(self, workdir) -> None:
        """Restores the best checkpoint.

        Raises:
          UserError: if there is none.
        """
        if not self.best.latest_checkpoint:
            raise UserError(
                f"--workdir={workdir}: expected a checkpoint, found none yet; "
                "train.py writes the first when it first validates"
            )
        self._restore(self.best.latest_checkpoint)

    def restore_average(self, count: int) -> None:
        """Restores the mean of the weights of the last `count` checkpoints.

        Raises:
          UserError: if fewer are kept.
        """
        weights = self.model.trainable_variables
        totals = [0.0] * len(weights)
        for restore in self.each_of_last(count):
            restore()
            totals = [
                total + weight.numpy()
                for total, weight in zip(totals, weights, strict=True)
            ]
        for weight, total in zip(weights, totals, strict=True):
            weight.assign(total / count)

    def each_of_last(self, count: int) -> list[Callable]:
        """Functions that restore the last `count` checkpoints, one each.

        Raises:
          UserError: if fewer are kept.
        """
        kept = self.last.checkpoints
        if len(kept) < count:
            raise UserError(
                f"--average_checkpoints={count}: expected as many checkpoints, found "
                f"{len(kept)}; train longer, with --config.train.keep_checkpoints of "
                f"at least {count}"
            )
        newest = kept[len(kept) - count :]
        return [partial(self._restore, path) for path in newest]

    def _restore(self, path):
        status = self._checkpoint.restore(path)
        if self._whole:
            status.assert_consumed()
        else:
            status.assert_existing_objects_matched().expect_partial()


def _named(owner):
    """{path: tf.Variable} of a model or an optimizer; seeds by their order.

    Raises:
      ValueError: if two variables share a path: one of them would not be saved.
    """
    seeds, named = [], {}
    for variable in owner.variables:
        if variable.name == "seed_generator_state":
            # Keras counts these names up over the process.
            seeds.append(variable.value)
        elif variable.path in named:
            raise ValueError(f"{variable.path}: two variables have this path")
        else:
            named[variable.path] = variable.value
    return {**named, "seeds": seeds}
