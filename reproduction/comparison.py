"""Runs side by side, whatever they are: a table for each task."""

from reproduction.differences import fidelities, group
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
    tests = {name for one in records for name in one.results if name.startswith("test")}
    # (name of an evaluation or None of validations, score) of each column
    scores = [(None, kind.metric)]
    scores += [(test, name) for test in sorted(tests) for name in names]
    place = counted_in(records)
    columns = [
        Column("variant", "variant"),
        Column("settings", "settings"),
        *(
            Column(
                _key(test, name),
                f"{test or 'best validation'} {score_title(name)}",
                DIGITS.get(name, 2),
                is_mean=True,
            )
            for test, name in scores
        ),
        Column("parameters", "parameters", 0),
        Column("runs", "runs", 0),
        Column("finished", "finished", 0),
        Column(f"{place}s", f"{place}s", 1 if place == "epoch" else 0),
    ]
    rows, repeated = [], []
    for (variant, settings), members in group(records).items():
        furthest = {}  # of the runs with a seed
        for record in sorted(members, key=_progress, reverse=True):
            furthest.setdefault(record.seed, record)
        counted = [one for one in members if furthest[one.seed] is one]
        repeated += [one.name for one in members if furthest[one.seed] is not one]
        row = {"variant": variant, "settings": settings}
        rows.append(row | _figures(counted, scores))
    notes = _notes(records, rows, repeated)
    return Sheet(f"comparison-{task}", task, columns, rows, notes)


def _progress(record):
    return record.state == FINISHED, len(record.results), len(record.validations)


def _key(evaluation, name):
    unit = "_percent" if name == "accuracy" else ""
    return f"{(evaluation or 'validation').replace('-', '_')}_{name}{unit}"


def _figures(records, scores):
    finished = [record for record in records if record.state == FINISHED]
    counted = finished or records
    results = [result for record in records for result in record.results.values()]
    parameters = filter(None, (result.get("parameters") for result in results))
    row = {
        "runs": len(records),
        "finished": len(finished),
        "parameters": next(parameters, None),
        "epochs": mean_score(record.last("epoch") for record in counted).mean,
        "steps": mean_score(record.last("step") for record in counted).mean,
    }
    for evaluation, name in scores:
        values = [
            record.results.get(evaluation, {}).get(name)
            if evaluation
            else record.best_validation
            for record in counted
        ]
        values = [shown(name, value) for value in values if value is not None]
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
    if names := fidelities(records):
        notes.append(f"The fidelity of TransEvolve is {names}.")
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
