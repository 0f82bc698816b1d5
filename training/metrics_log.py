"""What a run measured: metrics.jsonl for programs, TensorBoard for people."""

import json
import os
from pathlib import Path

import tensorflow as tf


class MetricsLog:
    """Writes metrics to a workdir.

    `metrics.jsonl` holds one object a logged step and nothing that differs between
    two runs with one seed on one machine; speeds go to TensorBoard alone.

    Args:
      workdir: of the run.
      step: of the checkpoint that the run starts from; lines after it, left by a run
        that was stopped, are dropped.
    """

    def __init__(self, workdir: Path, step: int):
        path = workdir / "metrics.jsonl"
        kept = []
        if path.exists():
            lines = path.read_text().splitlines(keepends=True)
            # A line that a kill cut short is after the checkpoint, too.
            whole = [line for line in lines if line.endswith("}\n")]
            kept = [line for line in whole if json.loads(line)["step"] <= step]
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text("".join(kept))
        os.replace(unfinished, path)
        self._path = path
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
        with self._writers[split].as_default(step=step):
            for name, value in {**metrics, **(speeds or {})}.items():
                tf.summary.scalar(name, value)

    def close(self):
        for writer in self._writers.values():
            writer.close()
