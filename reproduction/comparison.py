"""Runs side by side, whatever they are: a table for each task."""

from reproduction.scores import mean_score
from reproduction.settings import group, profiles
from reproduction.sheet import DEVIATIONS, Column, Sheet
from reproduction.survey import FAILED, FINISHED, UNFINISHED, Run
from tasks import TASKS
from tasks.task import Task

TITLES = {
    "accuracy": "accuracy %",
    "bleu_13a": "BLEU (13a)",
    "bleu_intl": "BLEU (intl)",
    "bleu_authors": "BLEU (authors)",
    "chrf": "chrF",
}
DIGITS = {"loss": 4}  # others have two


def comparison(runs: list[Run]) -> list[Sheet]:
    """A sheet for each task of any runs, with a row for each variant and its settings.

    A figure is the mean over the finished runs of a row. Where none has finished, it
    is that over all which have validated.
    """
    return [
        _sheet(task, [run for run in runs if run.task == task])
        for task in sorted({run.task for run in runs})
    ]


def kind_of(runs: list[Run]) -> type[Task]:
    """The task of runs, for its metric; a plain one if this version has none such."""
    return TASKS.get(runs[0].config["kind"], Task)


def best_validation(run: Run) -> float | None:
    """The best validation score of a run so far, by its task's metric."""
    task = kind_of([run])
    scores = _known(row.get(task.metric) for row in run.validations)
    if not scores:
        return None
    return max(scores) if task.higher_is_better else min(scores)


def score_title(name: str) -> str:
    """A score's name, for people."""
    return TITLES.get(name, name.replace("_", " "))


def shown(name: str, value: float) -> float:
    """A score as people read it: accuracies in percent."""
    return 100 * value if name == "accuracy" else value


def _sheet(task, runs):
    kind = kind_of(runs)
    scores = {("validation", kind.metric): best_validation}
    tests = {name for run in runs for name in run.results if name.startswith("test")}
    names = sorted(kind.score_names, key=lambda name: name != kind.metric)
    for result in sorted(tests):
        for name in names:
            scores[result, name] = _reader(result, name)
    rows, repeated = [], []
    for (variant, settings), members in group(runs).items():
        members, others = _one_a_seed(members)
        rows.append(_row(variant, settings, members, scores))
        repeated += others
    columns = [Column("variant", "variant"), Column("settings", "settings")]
    for source, name in scores:
        title = score_title(name)
        best = "best " if source == "validation" else ""
        key, digits = _key(source, name), DIGITS.get(name, 2)
        title = f"{best}{source} {title}"
        columns.append(Column(key, title, digits, deviation=f"{key}_std"))
    place = counted_in(runs)
    columns += [
        Column("parameters", "parameters", 0),
        Column("runs", "runs", 0),
        Column("finished", "finished", 0),
        Column(f"{place}s", f"{place}s", 1 if place == "epoch" else 0),
    ]
    notes = _notes(runs, rows, repeated)
    sheet = Sheet(f"comparison-{task}", task, columns, rows, notes)
    return sheet._replace(columns=sheet.filled)


def counted_in(runs: list[Run]) -> str:
    """By which of "epoch" and "step" runs of one task are compared.

    An epoch may have other steps with another seed. So what is trained for a number of
    steps is compared by these.
    """
    if any(run.config.get("train.steps") for run in runs):
        return "step"
    rows = [row for run in runs for row in (*run.training, *run.validations)]
    return "epoch" if rows and all("epoch" in row for row in rows) else "step"


def _one_a_seed(runs):
    """Of runs with one seed that which has got furthest, and the others."""

    def progress(run):
        return run.state == FINISHED, len(run.results), len(run.validations)

    furthest = {}
    for run in sorted(runs, key=progress, reverse=True):
        furthest.setdefault(run.seed, run)
    kept = [run for run in runs if furthest[run.seed] is run]
    return kept, [run for run in runs if furthest[run.seed] is not run]


def _key(source, name):
    unit = "_percent" if name == "accuracy" else ""
    return f"{source.replace('-', '_')}_{name}{unit}"


def _reader(result, name):
    return lambda run: run.results.get(result, {}).get(name)


def _row(variant, settings, runs, scores):
    finished = [run for run in runs if run.state == FINISHED]
    counted = finished or runs
    parameters = [
        result.get("parameters") for run in runs for result in run.results.values()
    ]
    row = {
        "variant": variant,
        "settings": settings,
        "runs": len(runs),
        "finished": len(finished),
        "parameters": next(filter(None, parameters), None),
    }
    for (source, name), read in scores.items():
        values = [shown(name, value) for value in _known(map(read, counted))]
        key = _key(source, name)
        row[key], row[f"{key}_std"], _ = mean_score(values)
    for key, field in (("epochs", "epoch"), ("steps", "step")):
        last = [_last(run, field) for run in counted]
        row[key] = mean_score(last).mean
    return row


def _last(run, field):
    """How far a run has come, as far as its log says."""
    rows = (*run.training, *run.validations)
    return max(_known(row.get(field) for row in rows), default=None)


def _known(values):
    return [value for value in values if value is not None]


def _notes(runs, rows, repeated):
    notes = [
        "The runs of a row differ in their seed alone. Its figures are means over its "
        "finished runs, or over all of them where none has finished, as far as these "
        f"have been evaluated. {DEVIATIONS}"
    ]
    if repeated:
        names = ", ".join(run.name for run in repeated)
        notes.append(f"Left out, since another run of the row has the seed: {names}.")
    if found := profiles(runs):
        notes.append(f"TransEvolve followed the profile {found}.")
    if any(row["finished"] < row["runs"] for row in rows):
        notes += _unfinished(runs)
    return notes


def _unfinished(runs):
    notes = []
    going = [run for run in runs if run.state == UNFINISHED]
    if going:
        names = "; ".join(f"{run.name} ({_reached(run)})" for run in going)
        notes.append(f"Not finished, {len(going)} of {len(runs)} runs: {names}.")
    failed = [run for run in runs if run.state == FAILED]
    if failed:
        names = "; ".join(f"{run.name} ({_first_line(run.failure)})" for run in failed)
        notes.append(f"Failed, {len(failed)} of {len(runs)} runs: {names}.")
    return notes


def _reached(run):
    step, epoch = _last(run, "step"), _last(run, "epoch")
    if step is None:
        return "nothing logged yet"
    if epoch is None:
        return f"step {step:,}"
    return f"epoch {epoch:.1f}, step {step:,}"


def _first_line(text):
    return text.splitlines()[0]
