"""Table 3: accuracy of text classification, AG News and IMDB in word pieces."""

from benchmarks.models import BASELINE
from configs.published import ACCURACY, ACCURACY_SPREAD, OTHER_ACCURACY, SYSTEMS
from reproduction.differences import profiles
from reproduction.experiment import Experiment
from reproduction.results import Results, is_whole, rows_of, system, systems_of
from reproduction.scales import Scale
from reproduction.scores import NOT_RUN, mean_score, verdict
from reproduction.sheet import DEVIATIONS, Column, Sheet

TASKS = ["ag_news", "imdb"]
COLUMNS = [
    Column("model", "model"),
    Column("task", "task"),
    # Figures first, which a phone then shows.
    Column("accuracy", "test accuracy %", 2, is_mean=True),
    Column("published", "published", 1),
    Column("badge", "verdict"),
    Column("difference", "difference", 2, signed=True),
    Column("paper_way", "best test epoch, the paper's way", 2, is_mean=True),
    Column("paper_way_difference", "difference (paper's way)", 2, signed=True),
    Column("paper_way_badge", "verdict (paper's way)"),
    Column("last", "last epoch", 2, is_mean=True),
    Column("runs", "runs", 0),
    Column("parameters", "parameters", 0),
    Column("fidelity", "profile"),
    Column("system", "published as"),
]
NOTES = [
    "Test accuracy is that of the checkpoint with the best validation accuracy. Its "
    "difference and its verdict stand beside the published figure.",
    "The paper reports the mean of each run's best epoch on test data. Such a choice "
    "sees the test data, so it stands in a column of its own. The last epoch chooses "
    "nothing.",
    DEVIATIONS,
    "The published figures of the Transformer and of the other systems are from other "
    "papers, in other settings.",
]


def experiments(scale: Scale) -> list[Experiment]:
    """See `reproduction.tables`."""
    return of_tasks(TASKS, scale)


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    title = "Table 3: text classification"
    return [accuracies("table3", title, TASKS, scale, results)]


def of_tasks(tasks: list[str], scale: Scale) -> list[Experiment]:
    """Every variant of the scale, and every system of a task, on the tasks."""
    return [
        one
        for task in tasks
        for variant in _variants(task, scale)
        for one in scale.each_seed(scale.tasks[task], variant)
    ]


def _variants(task, scale):
    return dict.fromkeys([*scale.variants, *systems_of(scale, OTHER_ACCURACY[task])])


def accuracies(
    name: str, title: str, tasks: list[str], scale: Scale, results: Results
) -> Sheet:
    """A row for each task and model that the paper prints."""
    rows, parts, generated = [], set(), set()
    for task in tasks:
        run = _variants(task, scale)
        for variant in dict.fromkeys([*rows_of(scale), *run]):
            chosen = []
            if variant in run:
                chosen = scale.each_seed(scale.tasks[task], variant)
            records = results.finished(chosen)
            rows.append(_row(task, variant, scale, records))
            if not all(is_whole(task, record) for record in records):
                parts.add(task)
            sources = {record.config["data"]["source"] for record in records}
            if "generate" in sources:
                generated.add(task)
        rows += [
            {"task": task, "model": other, "published": published}
            | {"badge": NOT_RUN, "runs": 0}
            for other, published in OTHER_ACCURACY[task].items()
            if SYSTEMS.get(other) not in run
        ]
    notes = [
        scale.meaning,
        *NOTES,
        *results.absences({task: scale.tasks[task] for task in tasks}),
        *(f"{task} was run on a part of its data." for task in sorted(parts)),
        *(
            f"The examples of {task} were generated here. The paper's are the "
            "benchmark's files, of the same rules."
            for task in sorted(generated)
        ),
    ]
    return Sheet(name, title, COLUMNS, rows, notes)


def _row(task, variant, scale, records):
    name = system(variant)
    published = {**ACCURACY[task], **OTHER_ACCURACY[task]}.get(name or variant)
    # The baseline's and the systems' figures come from other papers.
    same_measure = scale.is_paper and variant != BASELINE and not name
    same_measure = same_measure and all(is_whole(task, record) for record in records)
    chosen = mean_score(100 * record.results["test"]["accuracy"] for record in records)
    tested = [
        [100 * row["accuracy"] for row in record.test_scores] for record in records
    ]
    paper_way = mean_score(max(each, default=None) for each in tested)
    spread = ACCURACY_SPREAD[task]
    return {
        "task": task,
        "model": variant,
        "system": None if published is None else name,
        "fidelity": profiles(records),
        "runs": chosen.count,
        "parameters": records[0].results["test"]["parameters"] if records else None,
        "published": published,
        **chosen.cells("accuracy"),
        **mean_score(each[-1] for each in tested if each).cells("last"),
        **paper_way.cells("paper_way"),
        **verdict(chosen.mean, published, same_measure, spread),
        **verdict(paper_way.mean, published, same_measure, spread, "paper_way_"),
    }
