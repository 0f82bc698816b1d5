"""The last checkpoints of a run, and the best one."""

from pathlib import Path

import tensorflow as tf

from training.errors import UserError


class Checkpoints:
    """Checkpoints below `workdir/checkpoints`: `last/` and `best/`.

    Args:
      workdir: of the run.
      model: what evaluation needs.
      optimizer: None where nothing is trained; only then may it be missing.
      keep: how many of the last to keep.
    """

    def __init__(self, workdir: Path, model, optimizer=None, keep: int = 1):
        self.model = model
        self.best_accuracy = tf.Variable(-1.0, dtype=tf.float64)
        # Variables are named one by one: TensorFlow's own walk through a Keras 3
        # model misses layers within lists, and the states of dropout seeds.
        parts = {"model": _named(model), "best_accuracy": self.best_accuracy}
        if optimizer is not None:
            parts["optimizer"] = _named(optimizer)
        self._whole = optimizer is not None
        self._checkpoint = tf.train.Checkpoint(**parts)
        folder = Path(workdir) / "checkpoints"
        self.last = self._manager(folder / "last", keep)
        self.best = self._manager(folder / "best", 1)

    def _manager(self, folder, keep):
        return tf.train.CheckpointManager(self._checkpoint, str(folder), keep)

    def save(self, step: int, accuracy: float) -> None:
        """Saves to `last`, and to `best` if no earlier accuracy was as high."""
        if accuracy > float(self.best_accuracy):
            self.best_accuracy.assign(accuracy)
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
                "train.py writes one at the end of each epoch"
            )
        self._restore(self.best.latest_checkpoint)

    def restore_average(self, count: int) -> None:
        """Restores the mean of the weights of the last `count` checkpoints.

        Raises:
          UserError: if fewer are kept.
        """
        kept = self.last.checkpoints
        if len(kept) < count:
            raise UserError(
                f"--average_checkpoints={count}: expected as many checkpoints, found "
                f"{len(kept)}; train with --config.train.keep_checkpoints={count}"
            )
        weights = self.model.trainable_variables
        totals = [0.0] * len(weights)
        for path in kept[-count:]:
            self._restore(path)
            totals = [
                total + weight.numpy()
                for total, weight in zip(totals, weights, strict=True)
            ]
        for weight, total in zip(weights, totals, strict=True):
            weight.assign(total / count)

    def _restore(self, path):
        status = self._checkpoint.restore(path)
        if self._whole:
            status.assert_consumed()
        else:
            status.assert_existing_objects_matched().expect_partial()


def _named(owner):
    """{path: tf.Variable} of a model or an optimizer; seeds by their order."""
    seeds, named = [], {}
    for variable in owner.variables:
        if variable.name == "seed_generator_state":
            # Keras counts these names up over the process.
            seeds.append(variable.value)
        else:
            named[variable.path] = variable.value
    return {**named, "seeds": seeds}
