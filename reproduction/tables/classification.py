"""Table 3: accuracy of text classification, AG News and IMDB in word pieces."""

from configs.published import ACCURACY, ACCURACY_SPREAD, OTHER_ACCURACY, SYSTEMS
from models import BASELINE
from reproduction.differences import fidelities
from reproduction.results import Results, has_all_data, models_of
from reproduction.scales import Scale
from reproduction.scores import accuracy_cells, mean_score, order, verdict
from reproduction.sheet import CHECKPOINT, DEVIATIONS, Column, Sheet
from reproduction.tuning import Tuning, tune

TASKS = ["ag_news", "imdb"]
COLUMNS = [
    Column("model", "model"),
    Column("task", "task"),
    # Figures first, which a phone then shows.
    Column("accuracy", "test accuracy %", 2, is_mean=True),
    Column("interval", "± of 95 %", 2),
    Column("published", "published", 1),
    Column("badge", "verdict"),
    Column("difference", "difference", 2, signed=True),
    Column("paper_way", "best test epoch, the paper's way", 2, is_mean=True),
    Column("paper_way_difference", "difference (paper's way)", 2, signed=True),
    Column("paper_way_badge", "verdict (paper's way)"),
    Column("last", "last epoch", 2, is_mean=True),
    Column("runs", "runs", 0),
    Column("parameters", "parameters", 0),
    Column("rate", "lr_max", 3),
    Column("rates", "validation accuracy % by lr_max"),
    Column("fidelity", "fidelity"),
    Column("system", "published as"),
]
NOTES = [
    f"{CHECKPOINT} Its difference and its verdict stand beside the published figure.",
    "The paper reports the mean of each run's best epoch on test data. Such a choice "
    "sees the test data, so it stands in a column of its own. So does the last epoch, "
    "which takes no choice.",
    DEVIATIONS,
    "The interval of 95 % is over draws of the test data and, where there are several "
    "runs, over these. A difference of two models is clear if its interval leaves out "
    "0, the two taken for independent.",
    "The published figures of the Transformer and of the other systems are from other "
    "papers, in other settings.",
]
TUNED = (
    "A row with an lr_max has the one with which a run of its first seed was best on "
    "validation data, of half, once and twice that of the task's config."
)


def rows(
    scale: Scale, results: Results | None = None, tasks: list[str] = TASKS
) -> list[tuple[dict, list]]:
    """See `reproduction.tables`; every variant of the scale, and the systems of a task.

    Models of the paper that do not run here have rows too.
    """
    return [(cells, one.runs) for cells, one in _tuned(scale, results, tasks)]


def _tuned(scale, results, tasks):
    """(cells that say what it is, `Tuning`) of each row."""
    rows = []
    for task in tasks:
        for model in models_of(scale, OTHER_ACCURACY[task]):
            tuning = Tuning([], [])
            if model in scale.variants or model in scale.systems:
                tuning = tune(scale, scale.tasks[task], model, results)
            rows.append(({"task": task, "model": model}, tuning))
    return rows


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    return [accuracies("table3", "Table 3: text classification", TASKS, scale, results)]


def accuracies(
    name: str, title: str, tasks: list[str], scale: Scale, results: Results
) -> Sheet:
    """The sheet of the rows of some tasks."""
    filled, parts, generated = [], set(), set()
    for cells, tuning in _tuned(scale, results, tasks):
        records = results.finished(tuning.filling)
        figures = _figures(**cells, scale=scale, records=records)
        filled.append(cells | figures | _rates(tuning))
        if not all(has_all_data(cells["task"], record) for record in records):
            parts.add(cells["task"])
        if any(record.config["data"]["source"] == "generate" for record in records):
            generated.add(cells["task"])
    notes = [
        scale.meaning,
        *NOTES,
        *_orders(tasks, filled),
        *[TUNED] * any(row["rate"] for row in filled),
        *results.absences({task: scale.tasks[task] for task in tasks}),
        *(f"{task} was run on a part of its data." for task in sorted(parts)),
        *(
            f"The examples of {task} were generated here. The paper's are the "
            "benchmark's files, of the same rules."
            for task in sorted(generated)
        ),
    ]
    return Sheet(name, title, COLUMNS, filled, notes)


def _orders(tasks, rows):
    """A sentence for each task on the order of its models."""
    for task in tasks:
        figures = [
            (row["accuracy"], row["interval"], row["published"])
            for row in rows
            if row["task"] == task and None not in (row["published"], row["interval"])
        ]
        if said := order(figures):
            yield f"On {task}, {said}"


def _rates(tuning):
    """The cells on learning rates, of a model that has tried some."""
    if tuning.rate is None:
        return {"rate": None, "rates": None}
    scores = (f"{rate:g}: {100 * x:.1f}" for rate, x in tuning.scores.items())
    return {"rate": tuning.rate, "rates": ", ".join(scores)}


def _figures(task, model, scale, records):
    systems = OTHER_ACCURACY[task]
    published = {**ACCURACY[task], **systems}.get(model)
    # The baseline's and the systems' figures come from other papers.
    same_measure = (
        scale.is_paper
        and model != BASELINE
        and model not in SYSTEMS
        and all(has_all_data(task, record) for record in records)
    )
    results = [record.results["test"] for record in records]
    chosen = accuracy_cells(results)
    tested = [[100 * row["accuracy"] for row in one.test_scores] for one in records]
    paper_way = mean_score(max(each, default=None) for each in tested)
    spread = ACCURACY_SPREAD[task]
    return {
        "system": SYSTEMS[model] if model in systems else None,
        "fidelity": fidelities(records),
        "runs": len(records),
        "parameters": results[0]["parameters"] if results else None,
        "published": published,
        **chosen,
        **mean_score(each[-1] for each in tested if each).cells("last"),
        **paper_way.cells("paper_way"),
        **verdict(chosen["accuracy"], published, same_measure, spread),
        **verdict(paper_way.mean, published, same_measure, spread, "paper_way_"),
    }
