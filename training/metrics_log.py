"""What a run measured: metrics.jsonl for programs, TensorBoard for people."""

import hashlib
import json
from pathlib import Path

import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams import api as hparams

from common.checksums import DamagedError

NAME = "metrics.jsonl"
SPLITS = ("train", "validation")
# Bytes of a record beside its content: its length and two checksums.
RECORD_FRAME = 16


class MetricsLog:
    """Writes metrics to a workdir.

    `metrics.jsonl` holds one object a logged step and nothing that differs between
    two runs with one seed on one machine; speeds go to TensorBoard alone.

    Args:
      workdir: of the run.
      lines, sum: those of the checkpoint that the run starts from, 0 and None of the
        one before the first step; later lines, left by a run that was stopped, are
        dropped, and so are later steps in TensorBoard's files.

    Attributes:
      lines: how many were written so far.

    Raises:
      DamagedError: if they are not those that were written, or come from checkpoints
        that are no more.
    """

    def __init__(self, workdir: Path, lines: int = 0, sum: str | None = None):
        self._path = workdir / NAME
        content = self._path.read_bytes() if self._path.exists() else b""
        counted = first_lines(workdir, lines, sum)
        if sum is None and _follows_validation(content):
            raise DamagedError(
                f"{workdir / 'checkpoints'}: expected those of the validations in "
                f"{self._path}, found none that is sound; put them back, or train anew "
                "in another workdir"
            )
        self._tensorboard = workdir / "tensorboard"
        rows = [json.loads(line) for line in counted.splitlines()]
        for split in SPLITS:
            steps = [row["step"] for row in rows if row["split"] == split]
            for path in (self._tensorboard / split).glob("*tfevents*"):
                self._cut(path, max(steps, default=0))
        self._put(counted, self._path)
        self.lines = lines
        self._writers = {
            split: tf.summary.create_file_writer(str(self._tensorboard / split))
            for split in SPLITS
        }

    def _cut(self, path, last_step):
        """Drops the events after a step, which a file has in the order of steps."""
        size = 0
        for record in RawEventFileLoader(str(path)).Load():
            if Event.FromString(record).step > last_step:
                self._put(path.read_bytes()[:size], path)
                return
            size += RECORD_FRAME + len(record)

    def _put(self, content, path):
        # TensorBoard would read what a kill leaves in its folder.
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_bytes(content)
        unfinished.replace(path)

    @property
    def sum(self) -> str:
        """SHA-256 of all lines."""
        return hashlib.sha256(self._path.read_bytes()).hexdigest()

    def write(self, split: str, step: int, metrics: dict, others: dict | None = None):
        """Writes one step's metrics of "train" or "validation".

        Args:
          others: for TensorBoard alone.
        """
        row = {"step": step, "split": split, **metrics}
        with self._path.open("a") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
        self.lines += 1
        with self._writers[split].as_default(step=step):
            for name, value in {**metrics, **(others or {})}.items():
                tf.summary.scalar(name, value)

    def write_hyperparameters(self, fields: dict, metric: str) -> None:
        """Writes a config, for TensorBoard's page that compares runs by them.

        Args:
          fields: {"train.batch_size": 80, ...}.
          metric: which one of validation to show beside them.
        """
        simple = (bool, int, float, str)
        fields = {
            name: value if isinstance(value, simple) else str(value)
            for name, value in fields.items()
        }
        with tf.summary.create_file_writer(str(self._tensorboard)).as_default():
            hparams.hparams_config(
                [hparams.HParam(name) for name in fields],
                [hparams.Metric(metric, group="validation")],
            )
            hparams.hparams(fields)

    def close(self) -> None:
        """Writes what TensorBoard's files still lack."""
        for writer in self._writers.values():
            writer.close()


def first_lines(workdir: Path, lines: int, sum: str | None) -> bytes:
    """The lines of a workdir's log that a checkpoint counts.

    Args:
      workdir: of the run.
      lines, sum: those of the checkpoint; see `MetricsLog`.

    Raises:
      DamagedError: if they are not those that were written.
    """
    path = workdir / NAME
    content = path.read_bytes() if path.exists() else b""
    counted = b"".join(content.splitlines(keepends=True)[:lines])
    if sum is not None and hashlib.sha256(counted).hexdigest() != sum:
        raise DamagedError(
            f"{path}: expected the {lines} lines that were written before the last "
            "checkpoint, found others; put the file back, or train anew in another "
            "workdir"
        )
    return counted


def _follows_validation(lines):
    """Whether a run went on after a validation, so that it had kept a checkpoint."""
    return any(b'"split": "validation"' in line for line in lines.splitlines()[:-1])
