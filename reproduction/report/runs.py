"""What the page shows of runs: each once, and what they share once a task."""

import re
from typing import NamedTuple

from reproduction.comparison import (
    DIGITS,
    best_validation,
    kind_of,
    score_title,
    shown,
)
from reproduction.settings import common, own, text
from reproduction.survey import Run
from training.config import flatten

# Of all logs together, in characters, and the most of one run and of one line.
ALL_LOGS, LOG, LINE = 1_500_000, 4_000, 300
VALUE = 500  # characters of a value that a file holds

# What a terminal takes for a command, and characters that are none of a page.
COMMAND = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
BYTE = re.compile(r"[\udc80-\udcff]")  # of a folder's name, that is no UTF-8
UNSHOWN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\ud800-\udfff\ufffe\uffff]"
)


class RunView(NamedTuple):
    """What the page shows of a run.

    Attributes:
      name, state: of the run.
      best: its best validation score, for people; "" if it has none.
      facts: {what: text}.
      columns: names of its results, as "test".
      results: {score: a text for each column}.
      settings: {name: text} of those that are not its task's common ones.
      failure: why it ended, or None.
      log: its last lines.
    """

    name: str
    state: str
    best: str
    facts: dict[str, str]
    columns: list[str]
    results: dict[str, list[str]]
    settings: dict[str, str]
    failure: str | None
    log: str


class TaskView(NamedTuple):
    """The runs of a task.

    Attributes:
      task: its name.
      settings: {name: text} that most of its runs have.
      runs: a list of `RunView`.
    """

    task: str
    settings: dict[str, str]
    runs: list[RunView]


def views(runs: list[Run]) -> list[TaskView]:
    """The runs by task, in the order of their names."""
    log = min(LOG, ALL_LOGS // max(len(runs), 1))
    found = []
    for task in sorted({run.task for run in runs}):
        members = [run for run in runs if run.task == task]
        shared = common(members)
        each = [_view(run, shared, log) for run in members]
        found.append(TaskView(task, _texts(shared), each))
    return found


def plain(text: str) -> str:
    """A text without what steers a terminal, or turns or breaks a page."""
    text = BYTE.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", text)
    return UNSHOWN.sub("", COMMAND.sub("", text))


def _view(run, shared, log):
    results = {name: flatten(result) for name, result in run.results.items()}
    # What the run's name says before.
    told = {"task", "variant", "split"}
    scores = dict.fromkeys(
        score for result in results.values() for score in result if score not in told
    )
    return RunView(
        name=run.name,
        state=run.state,
        best=_best(run),
        facts=_facts(run),
        columns=list(results),
        results={
            score_title(score): [
                _score(score, result.get(score)) for result in results.values()
            ]
            for score in scores
        },
        settings=_texts(own(run, shared)),
        failure=run.failure and plain(run.failure)[-LOG:],
        log=_tail(run.log, log),
    )


def _best(run):
    score = best_validation(run)
    if score is None:
        return ""
    metric = kind_of([run]).metric
    title, percent, _ = score_title(metric).partition(" %")
    digits = DIGITS.get(metric, 2)
    return f"best validation {title}: {shown(metric, score):.{digits}f}{percent}"


def _facts(run):
    facts = {"variant": run.variant, "seed": str(run.seed)}
    rows = [*run.training, *run.validations]
    if rows:
        last = max(rows, key=lambda row: row["step"])
        facts["steps"] = f"{last['step']:,}"
        if last.get("epoch") is not None:
            facts["epochs"] = f"{last['epoch']:.1f}"
    return {**facts, **_texts(flatten(run.facts))}


def _texts(values):
    return {name: plain(text(value))[:VALUE] for name, value in values.items()}


def _score(name, value):
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return plain(text(value))[:VALUE]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{shown(name, value):.4f}".rstrip("0").rstrip(".")


def _tail(lines, size):
    """As many of the last lines as fit in a size, each cut to its own."""
    kept, length = [], 0
    for line in reversed(lines):
        line = plain(line)
        line = line if len(line) <= LINE else line[: LINE - 1] + "…"
        length += len(line) + 1
        if length > size:
            break
        kept.append(line)
    return "\n".join(reversed(kept))
