"""What lies in the workdirs of a folder, finished or not."""

import json
from pathlib import Path
from typing import NamedTuple

from common.paths import make_path
from training import metrics_log, test_scores
from training.config import flatten
from training.workdir import CONFIG
from training.workdir import UNFINISHED as HALF_KEPT

# What a run of `reproduction.running` writes beside what `training` does.
LOG, FAILURE, FACTS = "log.txt", "failure.txt", "facts.json"
LOG_LINES = 30
# What makes a `config.json` one of a run.
IS = {"task": str, "variant": str, "kind": str, "seed": int, "train": dict}
FINISHED, FAILED, UNFINISHED = "finished", "failed", "unfinished"


class Run(NamedTuple):
    """What a workdir holds.

    Attributes:
      name: its path below the folder that was searched.
      config: flat, {"train.batch_size": 80, ...}.
      validations: rows of `metrics.jsonl` of validation data, with `step` and, where
        the run counts epochs, `epoch`; the training ones are in `training`.
      training: likewise, of training batches.
      test_scores: the same for test data, where they were asked for. They have chosen
        nothing.
      results: {"test": ..., "validation-average-10": ...}, of evaluations.
      failure: why it ended, if it did not end well.
      facts: machine, versions, commit and seconds, of runs of `reproduce.py`.
      log: its last lines.
    """

    name: str
    config: dict
    validations: list[dict]
    training: list[dict]
    test_scores: list[dict]
    results: dict[str, dict]
    failure: str | None
    facts: dict
    log: list[str]

    @property
    def task(self) -> str:
        return self.config["task"]

    @property
    def variant(self) -> str:
        return self.config["variant"]

    @property
    def seed(self) -> int:
        return self.config["seed"]

    @property
    def state(self) -> str:
        if self.failure:
            return FAILED
        # What has facts says when it has been evaluated wholly.
        is_whole = self.facts.get("finished") if self.facts else self._is_trained
        return FINISHED if is_whole else UNFINISHED

    @property
    def _is_trained(self):
        """Whether the last validation, if any is known, was at the end of training."""
        if not self.validations:
            return bool(self.results)
        last = self.validations[-1]
        if steps := self.config.get("train.steps"):
            return last.get("step", 0) >= steps
        return last.get("epoch", 0) >= self.config.get("train.epochs", 0)


def survey(folder) -> list[Run]:
    """The runs in a folder and all folders below it, by name.

    Files that a killed process has left half-written are read as far as they go.
    """
    folder = make_path(folder, "--report")
    # A run that failed before it began has its config with its facts alone.
    names = (CONFIG, FACTS)
    found = {path.parent for name in names for path in folder.glob(f"**/{name}")}
    # One that was killed at its very start has nothing to show.
    runs = (read(workdir, folder) for workdir in found if workdir.name != HALF_KEPT)
    return sorted((run for run in runs if run), key=lambda run: run.name)


def read(workdir: Path, folder: Path | None = None) -> Run | None:
    """The run in a workdir, named by its path in `folder`; None if there is none."""
    facts = _object(workdir / FACTS) or {}
    config = _object(workdir / CONFIG) or facts.pop("config", None)
    facts.pop("config", None)
    if not config or any(type(config.get(key)) is not kind for key, kind in IS.items()):
        return None
    rows = _lines(workdir / metrics_log.NAME)
    results = {
        path.stem: result
        for path in sorted((workdir / "results").glob("*.json"))
        if (result := _object(path))
    }
    return Run(
        name=_name(workdir, folder),
        config=flatten(config),
        validations=[row for row in rows if row.get("split") == "validation"],
        training=[row for row in rows if row.get("split") == "train"],
        test_scores=test_scores.read(workdir),
        results=results,
        failure=_text(workdir / FAILURE).strip() or None,
        facts=facts,
        log=_text(workdir / LOG).splitlines()[-LOG_LINES:],
    )


def _name(workdir, folder):
    if folder is None or workdir == folder:
        return workdir.resolve().name
    return workdir.relative_to(folder).as_posix()


def _object(path):
    """The JSON object in a file, None if there is none."""
    try:
        found = json.loads(_text(path))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _lines(path):
    """The metrics in a file with one object a line, up to a line that is none."""
    found = []
    for line in _text(path).splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            break
        if not isinstance(row, dict) or not isinstance(row.get("step"), int):
            break
        found.append(row)
    return found


def _text(path):
    try:
        return path.read_text(errors="replace") if path.is_file() else ""
    except OSError:  # of somebody else, maybe
        return ""
