"""What a run measured: metrics.jsonl for programs, TensorBoard for people."""

import hashlib
import json
import time
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from common.checksums import DamagedError
from common.json_files import read_rows
from common.paths import write_whole
from training.metrics import METRICS

NAME, TEST_SCORES = "metrics.jsonl", "test_scores.jsonl"
SPLITS = ("train", "validation")


class MetricsLog:
    """Writes metrics to a workdir.

    `metrics.jsonl` holds one object a logged step and nothing that differs between
    two runs with one seed on one machine; speeds go to TensorBoard alone.

    Args:
      workdir: of the run.
      lines, sum: those of the checkpoint that the run starts from, 0 and None of the
        one before the first step; later lines, left by a run that was stopped, are
        dropped, and TensorBoard is told to drop later steps.

    Attributes:
      lines: how many were written so far.

    Raises:
      DamagedError: if they are not those that were written, or come from checkpoints
        that are no more.
    """

    def __init__(self, workdir: Path, lines: int = 0, sum: str | None = None):
        self._workdir, self._path = workdir, workdir / NAME
        content = self._path.read_bytes() if self._path.exists() else b""
        counted = first_lines(workdir, lines, sum)
        if sum is None and _follows_validation(content):
            raise DamagedError(
                f"{workdir / 'checkpoints'}: expected those of the validations in "
                f"{self._path}, found none that is sound; put them back, or train anew "
                "in another workdir"
            )
        write_whole(self._path, counted)
        self.lines = lines
        steps = [json.loads(line)["step"] for line in counted.splitlines()]
        self._writers = {}
        for split in SPLITS:
            self._writers[split] = EventFileWriter(self._folder(split))
            start = SessionLog(status=SessionLog.START)
            self._add(split, session_log=start, step=max(steps, default=-1) + 1)

    @property
    def sum(self) -> str:
        """SHA-256 of all lines."""
        return hashlib.sha256(self._path.read_bytes()).hexdigest()

    def write(self, split: str, step: int, metrics: dict, speeds: dict | None = None):
        """Writes one step's metrics of "train" or "validation".

        Args:
          speeds: and what else is for TensorBoard alone.
        """
        row = {"step": step, "split": split, **metrics}
        with self._path.open("a") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
        self.lines += 1
        for name, value in {**metrics, **(speeds or {})}.items():
            self._add(split, summary=scalar_pb(name, value), step=step)
        self._writers[split].flush()

    def write_test_scores(self, step: int, metrics: dict) -> None:
        """Writes one step's metrics of test data, to a file of their own.

        A step that is taken again after an interruption has two lines, of which the
        last one counts.
        """
        path = self._workdir / TEST_SCORES
        # A line that was cut off by a kill ends here.
        is_cut = path.exists() and path.read_text()[-1:] not in ("", "\n")
        with path.open("a") as file:
            file.write("\n" * is_cut + json.dumps({"step": step, **metrics}) + "\n")

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
        names = [hparams.HParam(name) for name in fields]
        metrics = [hparams.Metric(metric, group="validation")]
        self._writers[""] = EventFileWriter(self._folder(""))
        self._add("", summary=hparams.hparams_config_pb(names, metrics))
        self._add("", summary=hparams.hparams_pb(fields))
        self._writers.pop("").close()

    def close(self) -> None:
        """Writes what TensorBoard's files still lack."""
        for writer in self._writers.values():
            writer.close()

    def _folder(self, split):
        return str(self._workdir / "tensorboard" / split)

    def _add(self, split, **content):
        self._writers[split].add_event(Event(wall_time=time.time(), **content))


def read_test_scores(workdir: Path) -> list[dict]:
    """The metrics of test data at each step that was measured, in order.

    Raises:
      UserError: if the file is damaged.
    """
    latest = {row["step"]: row for row in read_rows(workdir / TEST_SCORES, METRICS)}
    return [latest[step] for step in sorted(latest)]


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
