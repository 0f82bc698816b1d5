"""What a run measured: metrics.jsonl for programs, TensorBoard for people."""

import json
import os
from pathlib import Path

import tensorflow as tf

from common.errors import UserError

NAME = "metrics.jsonl"


class MetricsLog:
    """Writes metrics to a workdir.

    `metrics.jsonl` holds one object a logged step and nothing that differs between
    two runs with one seed on one machine; speeds go to TensorBoard alone.

    Args:
      workdir: of the run.
      lines: how many the checkpoint that the run starts from had; later ones, left by
        a run that was stopped, are dropped.

    Attributes:
      lines: written so far.

    Raises:
      UserError: if there are fewer.
    """

    def __init__(self, workdir: Path, lines: int = 0):
        self._path = workdir / NAME
        found = []
        if self._path.exists():
            found = self._path.read_text().splitlines(keepends=True)
        if len(found) < lines:
            raise UserError(
                f"{self._path}: expected the {lines} lines that were written before "
                f"the last checkpoint, found {len(found)}; put the file back, or train "
                "anew in another workdir"
            )
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_text("".join(found[:lines]))
        os.replace(unfinished, self._path)
        self.lines = lines
        self._writers = {
            split: tf.summary.create_file_writer(str(workdir / "tensorboard" / split))
            for split in ("train", "validation")
        }

    def write(self, split: str, step: int, metrics: dict, speeds: dict | None = None):
        """Writes one step's metrics of "train" or "validation".

        Args:
          speeds: for TensorBoard alone.
        """
        row = {"step": step, "split": split, **metrics}
        with open(self._path, "a") as file:
            file.write(json.dumps(row) + "\n")
        self.lines += 1
        with self._writers[split].as_default(step=step):
            for name, value in {**metrics, **(speeds or {})}.items():
                tf.summary.scalar(name, value)

    def close(self):
        for writer in self._writers.values():
            writer.close()
