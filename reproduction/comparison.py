"""Runs side by side, whatever they are: a table for each task."""

from reproduction.differences import group, profiles
from reproduction.records import FAILED, FINISHED, UNFINISHED, Record
from reproduction.scores import mean_score
from reproduction.sheet import DEVIATIONS, Column, Sheet

TITLES = {
    "accuracy": "accuracy %",
    "bleu_13a": "BLEU (13a)",
    "bleu_intl": "BLEU (intl)",
    "bleu_authors": "BLEU (authors)",
    "chrf": "chrF",
}
DIGITS = {"loss": 4}  # others have two


def comparison(records: list[Record]) -> list[Sheet]:
    """A sheet for each task of any runs, with a row for each variant and its settings.

    A figure is the mean over the finished runs of a row. Where none has finished, it
    is that over all which have validated.
    """
    return [
        _sheet(task, [record for record in records if record.task == task])
        for task in sorted({record.task for record in records})
    ]


def score_title(name: str) -> str:
    """A score's name, for people."""
    return TITLES.get(name, name.replace("_", " "))


def shown(name: str, value: float) -> float:
    """A score as people read it: accuracies in percent."""
    return 100 * value if name == "accuracy" else value


def counted_in(records: list[Record]) -> str:
    """By which of "epoch" and "step" runs of one task are compared.

    An epoch may have other steps with another seed. So what is trained for a number of
    steps is compared by these.
    """
    if any(record.config["train"].get("steps") for record in records):
        return "step"
    rows = [row for one in records for row in (*one.training, *one.validations)]
    return "epoch" if rows and all("epoch" in row for row in rows) else "step"


def _sheet(task, records):
    kind = records[0].kind
    names = sorted(kind.score_names, key=lambda name: name != kind.metric)
    evaluations = {name for record in records for name in record.results}
    # (name of an evaluation or None of validations, score) of each column
    scores = [(None, kind.metric)]
    scores += [
        (evaluation, name)
        for evaluation in sorted(evaluations)
        if evaluation.startswith("test")
        for name in names
    ]
    rows, repeated = [], []
    for (variant, settings), members in group(records).items():
        furthest = _furthest_by_seed(members)
        counted = [record for record in members if furthest[record.seed] is record]
        row = {"variant": variant, "settings": settings}
        rows.append(row | _figures(counted, scores))
        repeated += [one.name for one in members if furthest[one.seed] is not one]
    columns = [Column("variant", "variant"), Column("settings", "settings")]
    for evaluation, name in scores:
        title = f"{evaluation or 'best validation'} {score_title(name)}"
        digits = DIGITS.get(name, 2)
        columns.append(Column(_key(evaluation, name), title, digits, is_mean=True))
    place = counted_in(records)
    columns += [
        Column("parameters", "parameters", 0),
        Column("runs", "runs", 0),
        Column("finished", "finished", 0),
        Column(f"{place}s", f"{place}s", 1 if place == "epoch" else 0),
    ]
    notes = _notes(records, rows, repeated)
    sheet = Sheet(f"comparison-{task}", task, columns, rows, notes)
    return sheet._replace(columns=sheet.filled)


def _furthest_by_seed(records):
    """{seed: that of its runs which has got furthest}."""

    def progress(record):
        return record.state == FINISHED, len(record.results), len(record.validations)

    furthest = {}
    for record in sorted(records, key=progress, reverse=True):
        furthest.setdefault(record.seed, record)
    return furthest


def _key(evaluation, name):
    unit = "_percent" if name == "accuracy" else ""
    return f"{(evaluation or 'validation').replace('-', '_')}_{name}{unit}"


def _score(record, evaluation, name):
    if evaluation is None:
        value = record.best_validation
    else:
        value = record.results.get(evaluation, {}).get(name)
    return None if value is None else shown(name, value)


def _figures(records, scores):
    finished = [record for record in records if record.state == FINISHED]
    counted = finished or records
    parameters = [
        result["parameters"]
        for record in records
        for result in record.results.values()
        if result.get("parameters")
    ]
    row = {
        "runs": len(records),
        "finished": len(finished),
        "parameters": parameters[0] if parameters else None,
        "epochs": mean_score(record.last("epoch") for record in counted).mean,
        "steps": mean_score(record.last("step") for record in counted).mean,
    }
    for evaluation, name in scores:
        values = [_score(record, evaluation, name) for record in counted]
        row |= mean_score(values).cells(_key(evaluation, name))
    return row


def _notes(records, rows, repeated):
    notes = [
        "The runs of a row differ in their seed alone. Its figures are means over its "
        "finished runs, or over all of them where none has finished, as far as these "
        f"have been evaluated. {DEVIATIONS}"
    ]
    if repeated:
        names = ", ".join(repeated)
        notes.append(f"Left out, since another run of the row has the seed: {names}.")
    if names := profiles(records):
        notes.append(f"TransEvolve followed the profile {names}.")
    if all(row["finished"] == row["runs"] for row in rows):
        return notes
    for state, title, reason in (
        (UNFINISHED, "Not finished", _reached),
        (FAILED, "Failed", lambda record: record.failure.splitlines()[0]),
    ):
        named = [f"{one.name} ({reason(one)})" for one in records if one.state == state]
        if named:
            count = f"{len(named)} of {len(records)} runs"
            notes.append(f"{title}, {count}: {'; '.join(named)}.")
    return notes


def _reached(record):
    step, epoch = record.last("step"), record.last("epoch")
    if step is None:
        return "nothing logged yet"
    return f"step {step:,}" if epoch is None else f"epoch {epoch:.1f}, step {step:,}"
