"""A profile of some updates, which TensorBoard shows."""

import logging
import math
from pathlib import Path

import tensorflow as tf

from common.errors import UserError

logger = logging.getLogger("transevolve")


class Profile:
    """Profiles the updates `first` to `last`, counted from 1.

    Args:
      steps: "FIRST:LAST".
      workdir: of the run; the profile goes to its `tensorboard/`.

    Raises:
      UserError: if these are no steps.
    """

    def __init__(self, steps: str, workdir: Path):
        first, _, last = steps.partition(":")
        numbers = first.isdecimal() and last.isdecimal()
        if not numbers or not 1 <= int(first) <= int(last):
            raise UserError(
                f"--profile={steps}: expected FIRST:LAST, two steps from 1, as in 20:30"
            )
        self._start, self._stop = int(first) - 1, int(last)
        self._folder = workdir / "tensorboard"
        self._is_running = False

    def check(self, step: int, total: int) -> None:
        """Raises UserError if the updates after `step` up to `total` lack some."""
        if not step <= self._start < self._stop <= total:
            raise UserError(
                f"--profile={self._start + 1}:{self._stop}: expected steps of those "
                f"that are left, {step + 1} to {total}"
            )

    def steps_left(self, step: int) -> float:
        """How many updates after `step` until the profile begins or ends."""
        return min(
            (at - step for at in (self._start, self._stop) if at > step),
            default=math.inf,
        )

    def at(self, step: int) -> None:
        """To be called when so many updates have been taken."""
        if step == self._start:
            tf.profiler.experimental.start(str(self._folder))
            self._is_running = True
        elif step >= self._stop:
            self.close()

    def close(self) -> None:
        """Writes what there is; to be called when training ends, too."""
        if self._is_running:
            self._is_running = False
            tf.profiler.experimental.stop()
            logger.info("profiled: tensorboard --logdir=%s", self._folder)
