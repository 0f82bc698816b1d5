"""Accuracies of classifiers: what tables 3 and 4 share."""

from configs.published import ACCURACY, ACCURACY_SPREAD, OTHER_ACCURACY, SYSTEMS
from reproduction.experiment import Experiment
from reproduction.scales import Scale
from reproduction.scores import NOT_RUN, badge, difference, mean_score
from reproduction.settings import profiles
from reproduction.sheet import DEVIATIONS, Column, Sheet
from reproduction.tables.table import (
    Results,
    is_whole,
    rows_of,
    system,
    systems_of,
)

# Its published figures come from other papers, in other settings.
BASELINE = "transformer"
COLUMNS = [
    Column("model", "model"),
    Column("task", "task"),
    # Figures first, which a phone then shows.
    Column("accuracy", "test accuracy %", 2, deviation="accuracy_deviation"),
    Column("published", "published", 1),
    Column("badge", "verdict"),
    Column("difference", "difference", 2, signed=True),
    Column(
        "paper_way",
        "best test epoch, the paper's way",
        2,
        deviation="paper_way_deviation",
    ),
    Column("paper_way_difference", "difference (paper's way)", 2, signed=True),
    Column("paper_way_badge", "verdict (paper's way)"),
    Column("last", "last epoch", 2, deviation="last_deviation"),
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


def experiments(tasks: list[str], scale: Scale, seeds: int | None) -> list[Experiment]:
    """Every variant of the scale, and every system of a task, on the tasks."""
    return [
        experiment
        for task in tasks
        for variant in _variants(task, scale)
        for experiment in _seeds(task, variant, scale, seeds)
    ]


def _variants(task, scale):
    return dict.fromkeys([*scale.variants, *systems_of(scale, OTHER_ACCURACY[task])])


def _seeds(task, variant, scale, seeds):
    return [
        scale.experiment(scale.settings[task], variant, seed=seed)
        for seed in range(seeds or scale.seeds)
    ]


def sheet(
    name: str,
    title: str,
    tasks: list[str],
    scale: Scale,
    seeds: int | None,
    results: Results,
) -> Sheet:
    """A row for each task and model that the paper prints."""
    rows, parts, made = [], set(), set()
    for task in tasks:
        run = _variants(task, scale)
        for variant in dict.fromkeys([*rows_of(scale), *run]):
            chosen = _seeds(task, variant, scale, seeds) if variant in run else []
            runs = results.finished(chosen)
            rows.append(_row(task, variant, scale, runs))
            if not all(is_whole(task, run) for run in runs):
                parts.add(task)
            if any(run.config["data.source"] == "generate" for run in runs):
                made.add(task)
        for other, published in OTHER_ACCURACY[task].items():
            if SYSTEMS.get(other) not in run:
                rows.append(
                    {"task": task, "model": other, "published": published}
                    | {"badge": NOT_RUN, "runs": 0}
                )
    notes = [scale.meaning, *NOTES, *results.absences(tasks)]
    notes += [f"{task} was run on a part of its data." for task in sorted(parts)]
    notes += [
        f"The examples of {task} were generated here. The paper's are the benchmark's "
        "files, of the same rules."
        for task in sorted(made)
    ]
    return Sheet(name, title, COLUMNS, rows, notes)


def _row(task, variant, scale, runs):
    score = mean_score(100 * run.results["test"]["accuracy"] for run in runs)
    paper_way = mean_score(_test_accuracies(run, max) for run in runs)
    name = system(variant)
    published = {**ACCURACY[task], **OTHER_ACCURACY[task]}.get(name or variant)
    in_its_settings = scale.is_paper and variant != BASELINE and not name
    same_measure = in_its_settings and all(is_whole(task, run) for run in runs)
    last = mean_score(_test_accuracies(run, _last) for run in runs)

    def verdict(accuracy):
        return badge(accuracy, published, same_measure, ACCURACY_SPREAD[task])

    return {
        "task": task,
        "model": variant,
        "system": None if published is None else name,
        "fidelity": profiles(runs),
        "runs": score.count,
        "parameters": runs[0].results["test"]["parameters"] if runs else None,
        "accuracy": score.mean,
        "accuracy_deviation": score.deviation,
        "last": last.mean,
        "last_deviation": last.deviation,
        "paper_way": paper_way.mean,
        "paper_way_deviation": paper_way.deviation,
        "published": published,
        "difference": difference(score.mean, published),
        "paper_way_difference": difference(paper_way.mean, published),
        "badge": verdict(score.mean),
        "paper_way_badge": verdict(paper_way.mean),
    }


def _test_accuracies(run, choose):
    accuracies = [100 * row["accuracy"] for row in run.test_scores]
    return choose(accuracies) if accuracies else None


def _last(values):
    return values[-1]
