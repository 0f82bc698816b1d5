"""Accuracies of classifiers: what tables 3 and 4 share."""

from configs.published import ACCURACY, ACCURACY_SPREAD, OTHER_ACCURACY, SYSTEMS
from data import DATASETS
from reproduction.experiment import Experiment
from reproduction.scales import Scale
from reproduction.scores import NOT_RUN, badge, difference, mean_score
from reproduction.sheet import Column, Sheet
from reproduction.survey import Run
from reproduction.tables.table import Results, rows_of, system, systems_of

# Its published figures come from other papers, in other settings.
BASELINE = "transformer"
COLUMNS = [
    Column("task", "task"),
    Column("model", "model"),
    Column("system", "published as"),
    Column("badge", "verdict"),
    Column("accuracy", "test accuracy %", 2),
    Column("accuracy_deviation", "± over seeds", 2),
    Column("published", "published", 1),
    Column("difference", "difference", 2, signed=True),
    Column("paper_way", "best test epoch, the paper's way", 2),
    Column("paper_way_deviation", "± over seeds (paper's way)", 2),
    Column("paper_way_difference", "difference (paper's way)", 2, signed=True),
    Column("paper_way_badge", "verdict (paper's way)"),
    Column("last", "last epoch", 2),
    Column("runs", "runs", 0),
    Column("parameters", "parameters", 0),
    Column("fidelity", "profile"),
]
NOTES = [
    "Test accuracy is that of the checkpoint with the best validation accuracy. Its "
    "difference and its verdict stand beside the published figure.",
    "The paper reports the mean of each run's best epoch on test data. Such a choice "
    "sees the test data, so it stands in a column of its own. The last epoch chooses "
    "nothing.",
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
    rows, parts = [], set()
    for task in tasks:
        run = _variants(task, scale)
        for variant in dict.fromkeys([*rows_of(scale), *run]):
            chosen = _seeds(task, variant, scale, seeds) if variant in run else []
            runs = results.finished(chosen)
            rows.append(_row(task, variant, scale, runs))
            if not all(map(_is_whole, runs)):
                parts.add(task)
        for other, published in OTHER_ACCURACY[task].items():
            if SYSTEMS.get(other) not in run:
                rows.append(
                    {"task": task, "model": other, "published": published}
                    | {"badge": NOT_RUN, "runs": 0}
                )
    notes = [scale.meaning, *NOTES, *results.absences(tasks)]
    notes += [f"{task} was run on a part of its data." for task in sorted(parts)]
    return Sheet(name, title, COLUMNS, rows, notes)


def _row(task, variant, scale, runs):
    score = mean_score(100 * run.results["test"]["accuracy"] for run in runs)
    paper_way = mean_score(_test_accuracies(run, max) for run in runs)
    name = system(variant)
    published = {**ACCURACY[task], **OTHER_ACCURACY[task]}.get(name or variant)
    in_its_settings = scale.is_paper and variant != BASELINE and not name
    same_measure = in_its_settings and all(map(_is_whole, runs))

    def verdict(accuracy):
        return badge(accuracy, published, same_measure, ACCURACY_SPREAD[task])

    return {
        "task": task,
        "model": variant,
        "system": None if published is None else name,
        "fidelity": fidelity(runs),
        "runs": score.count,
        "parameters": runs[0].results["test"]["parameters"] if runs else None,
        "accuracy": score.mean,
        "accuracy_deviation": score.deviation,
        "last": mean_score(_test_accuracies(run, _last) for run in runs).mean,
        "paper_way": paper_way.mean,
        "paper_way_deviation": paper_way.deviation,
        "published": published,
        "difference": difference(score.mean, published),
        "paper_way_difference": difference(paper_way.mean, published),
        "badge": verdict(score.mean),
        "paper_way_badge": verdict(paper_way.mean),
    }


def _is_whole(run):
    """Whether a run had all examples of its data set, if that has a known number."""
    dataset = DATASETS[run.config["data.dataset"]]
    whole = getattr(dataset, "NUM_EXAMPLES", None)
    if whole is None:
        return True
    training = run.facts.get("training_examples") or 0
    if "validation" not in dataset.SPLITS:  # it was cut from the training examples
        training += run.config["data.validation_examples"]
    found = {"train": training, "test": run.results["test"]["examples"]}
    return found == whole


def fidelity(runs: list[Run]) -> str | None:
    """The profiles that the runs followed; see docs/fidelity.md."""
    found = {run.config.get("model.fidelity") for run in runs} - {None}
    return ", ".join(sorted(found)) or None


def _test_accuracies(run, choose):
    accuracies = [100 * row["accuracy"] for row in run.test_scores]
    return choose(accuracies) if accuracies else None


def _last(values):
    return values[-1]
