"""What runs have left in their workdirs, finished or not."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from common import fields
from common.errors import UserError
from common.json_files import check_numbers, read_object, read_rows
from common.paths import make_path
from tasks import TASKS
from tasks.task import Task
from training import metrics_log
from training.config import FIELDS, flatten
from training.metrics import METRICS
from training.run_state import STATE
from training.workdir import CONFIG
from training.workdir import UNFINISHED as HALF_KEPT

# What a run of `reproduction.running` writes beside what `training` does.
LOG, FAILURE, FACTS = "log.txt", "failure.txt", "facts.json"
LOG_LINES = 30
# What makes a `config.json` one of a run, and what must be sound to compare it.
IS = {"task", "variant", "kind", "seed", "train", "data"}
LENGTHS = ("train.steps", "train.epochs")
READ = {name: field for name, field in FIELDS.items() if name in (*IS, *LENGTHS)}
SCORES = {*METRICS, *(name for task in TASKS.values() for name in task.score_names)}
FINISHED, FAILED, UNFINISHED = "finished", "failed", "unfinished"


class Record(NamedTuple):
    """What a run has left in its workdir.

    Attributes:
      name: its path below the folder that was searched.
      config: of the run, {"train": {"batch_size": 80, ...}, ...}.
      validations: rows of `metrics.jsonl` of validation data, with `step` and, where
        the run counts epochs, `epoch`.
      training: the rows of training batches.
      test_scores: rows of test data, where they were asked for. They have chosen
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

    task = property(lambda self: self.config["task"])
    variant = property(lambda self: self.config["variant"])
    seed = property(lambda self: self.config["seed"])

    @property
    def kind(self) -> type[Task]:
        """The class of the task; a plain one if this version has none such."""
        return TASKS.get(self.config["kind"], Task)

    @property
    def state(self) -> str:
        """`FINISHED`, `FAILED` or `UNFINISHED`."""
        if self.failure:
            return FAILED
        if self.facts:  # which say when a run has been evaluated wholly
            is_whole = self.facts.get("finished")
        elif not self.validations:
            is_whole = self.results
        else:  # whether the last validation was at the end of training
            last, train = self.validations[-1], self.config["train"]
            field = "step" if train.get("steps") else "epoch"
            is_whole = (last.get(field) or 0) >= train[f"{field}s"]
        return FINISHED if is_whole else UNFINISHED

    @property
    def best_validation(self) -> float | None:
        """The best validation score so far, by the task's metric."""
        scores = [row.get(self.kind.metric) for row in self.validations]
        best = max if self.kind.higher_is_better else min
        return best((x for x in scores if x is not None), default=None)

    def last(self, field: str) -> float | None:
        """How far the run has come by its log, in "step" or "epoch"."""
        values = [row.get(field) for row in (*self.training, *self.validations)]
        return max((x for x in values if x is not None), default=None)


def survey(folder) -> tuple[list[Record], dict[str, str]]:
    """The runs in a folder and all folders below it, as `read_each` has them."""
    folder = make_path(folder, "--report")
    # A run that failed before it began has its config with its facts alone.
    names = (CONFIG, FACTS)
    workdirs = {path.parent for name in names for path in folder.glob(f"**/{name}")}
    # One that was killed at its very start has nothing to show.
    return read_each((one for one in workdirs if one.name != HALF_KEPT), folder)


def read_each(
    workdirs: Iterable[Path], folder: Path
) -> tuple[list[Record], dict[str, str]]:
    """The runs in workdirs, by name; and why each of the others cannot be read."""
    records, damaged = [], {}
    for workdir in sorted(workdirs):
        try:
            record = read(workdir, folder)
        except UserError as error:
            damaged[_name(workdir, folder)] = str(error)
        else:
            records += [record] if record else []
    return sorted(records, key=lambda record: record.name), damaged


def read(workdir: Path, folder: Path | None = None) -> Record | None:
    """The run in a workdir, named by its path in `folder`; None if there is none.

    Of `metrics.jsonl` the end may be missing that no checkpoint counts.

    Raises:
      UserError: if one of its files is damaged, or holds no values of ours.
    """
    facts = read_object(workdir / FACTS, ("seconds", "training_examples")) or {}
    begun = facts.pop("config", None)  # until training has written its own
    path = workdir / CONFIG
    config = read_object(path)
    if config is None:
        path, config = workdir / FACTS, begun
    if not isinstance(config, dict) or IS - config.keys():
        return None
    _check_config(config, path)
    _check_log(workdir)
    rows = read_rows(workdir / metrics_log.NAME, ("epoch", *METRICS))
    # A step that was repeated after an interruption counts once.
    validations = {row["step"]: row for row in rows if row.get("split") == "validation"}
    return Record(
        name=_name(workdir, folder),
        config=config,
        validations=list(validations.values()),
        training=[row for row in rows if row.get("split") == "train"],
        test_scores=metrics_log.read_test_scores(workdir),
        results={
            path.stem: result
            for path in sorted((workdir / "results").glob("*.json"))
            if (result := _result(path))
        },
        failure=read_text(workdir / FAILURE).strip() or None,
        facts=facts,
        log=read_text(workdir / LOG).splitlines()[-LOG_LINES:],
    )


def _check_config(config, path):
    flat = flatten(config)
    try:
        fields.check(READ, flat)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if not any(flat.get(name) for name in LENGTHS):
        raise UserError(f"{path}: expected {' or '.join(LENGTHS)}, found neither")


def _check_log(workdir):
    """Raises `UserError` if the log lacks what the newest checkpoint counts."""
    states = workdir.glob(f"checkpoints/*/*/{STATE}")
    states = [path for path in states if path.parent.name.isdecimal()]
    for path in sorted(states, key=lambda path: -int(path.parent.name)):
        try:
            state = read_object(path, ("logged_lines",)) or {}
        except UserError:  # training takes the one before, too
            continue
        lines = int(state.get("logged_lines") or 0)
        metrics_log.first_lines(workdir, lines, state.get("log_sum"))
        return


def _result(path):
    """An evaluation, with the scores of single checkpoints if it has them."""
    result = read_object(path, SCORES | {"parameters", "examples"}) or {}
    singles = result.get("checkpoints", [])
    parts = [*singles] if isinstance(singles, list) else [singles]
    for scores in (*parts, result.get("mean_of_checkpoints", {})):
        if not isinstance(scores, dict):
            raise UserError(f"{path}: expected scores of checkpoints, found others")
        check_numbers(scores, SCORES, path)
    return result


def _name(workdir, folder):
    if folder is None or workdir == folder:
        return workdir.resolve().name
    return workdir.relative_to(folder).as_posix()


def read_text(path: Path) -> str:
    """The text of a file, as far as it is one; empty if there is none."""
    try:
        return path.read_text(errors="replace") if path.is_file() else ""
    except OSError:  # of somebody else, maybe
        return ""
