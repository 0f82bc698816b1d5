"""docs/results/imdb.md: its figures follow from its table of every epoch."""

import re

import pytest

from configs.published import ACCURACY, ACCURACY_SPREAD
from reproduction.scores import BY_CHANCE, TOLERANCE, mean_score, verdict
from tests.conftest import ROOT

PAGE = (ROOT / "docs/results/imdb.md").read_text()


def table(first_column):
    """The rows of the table whose head begins so, as lists of cells."""
    start = PAGE.index(f"| {first_column} |")
    rows = PAGE[start : PAGE.index("\n\n", start)].splitlines()
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]


def epochs():
    """{(model, seed): test accuracies by epoch}."""
    names, _, *rows = table("epoch")
    columns = [*zip(*rows, strict=True)]
    assert columns[0] == tuple(str(1 + epoch) for epoch in range(len(rows)))
    by_run = {}
    for name, column in zip(names[1:], columns[1:], strict=True):
        model, seed = name.lower().split(", ")
        model = model if model == "transformer" else f"transevolve-{model}"
        by_run[model, seed] = [float(cell) for cell in column if cell]
        assert len(by_run[model, seed]) == len([*filter(None, column)])
    return by_run


EPOCHS = epochs()


def of_model(model):
    return [accuracies for (name, _), accuracies in EPOCHS.items() if name == model]


def two_places(number):
    return f"{number:+.2f}".replace("-", "−")


def chosen():
    """{(model, seed): test accuracy of the epoch chosen by validation}."""
    rows = table("model | seed")[2:]
    return {
        (model.strip("`"), seed): float(x.split()[0]) for model, seed, x, *_ in rows
    }


def test_runs_are_those_of_every_epoch():
    rows = table("model | seed")[2:]
    assert [(row[0].strip("`"), row[1]) for row in rows] == [*EPOCHS]
    for (_, _, by_validation, best, last, count, _), accuracies in zip(
        rows, EPOCHS.values(), strict=True
    ):
        accuracy, epoch = re.fullmatch(r"(\S+) \(epoch (\d+)\)", by_validation).groups()
        assert float(accuracy) == accuracies[int(epoch) - 1]
        most = max(accuracies)
        assert best == f"{most:.2f} (epoch {accuracies.index(most) + 1})"
        assert (float(last), int(count)) == (accuracies[-1], len(accuracies))


@pytest.mark.parametrize("model", ACCURACY["imdb"])
def test_means_and_verdicts_follow(model):
    (row,) = (row for row in table("model | runs") if row[0] == f"`{model}`")
    _, runs, by_validation, best, ends, published, difference, badge = row
    most = [max(accuracies) for accuracies in of_model(model)]
    mean = mean_score(most).mean
    assert (int(runs), best) == (len(most), f"{mean:.2f}")
    assert ends == ("" if len(most) == 1 else f"{min(most):.2f}, {max(most):.2f}")
    mean_chosen = mean_score(x for (name, _), x in chosen().items() if name == model)
    assert by_validation == f"{mean_chosen.mean:.2f}"
    assert float(published) == ACCURACY["imdb"][model]
    for figure in (mean, mean_chosen.mean):  # the page says that both agree
        cells = verdict(
            figure,
            ACCURACY["imdb"][model],
            same_measure=model != "transformer",
            spread=ACCURACY_SPREAD["imdb"],
        )
        assert badge == cells["badge"]
    assert difference == two_places(mean - float(published))


@pytest.mark.parametrize("model", ["randomFF-1", "fullFF-1"])
def test_intervals_follow_from_the_epochs(model):
    best = [max(accuracies) for accuracies in of_model(f"transevolve-{model.lower()}")]
    score = mean_score(best)
    width = BY_CHANCE[score.count - 2] * score.deviation / score.count**0.5
    (line,) = re.findall(rf"\*\*{model} [^*]+\*\*[^*]+", PAGE)
    assert f"{score.mean:.1f} ± {width:.1f}" in line


def test_what_is_said_of_overfitting():
    best = [1 + accuracies.index(max(accuracies)) for accuracies in EPOCHS.values()]
    assert (min(best), max(best)) == (5, 8)
    assert "best on test data after five to eight epochs" in " ".join(PAGE.split())
    lost = [max(accuracies) - accuracies[-1] for accuracies in EPOCHS.values()]
    assert f"lose {min(lost):.1f} to {max(lost):.1f} points" in " ".join(PAGE.split())


def test_readme_says_the_same():
    (row,) = re.findall(
        "^.*docs/results/imdb.md.*$", (ROOT / "README.md").read_text(), re.M
    )
    models = {model for model, _ in EPOCHS if model != "transformer"}
    gains = [
        mean_score(map(max, of_model(model))).mean - ACCURACY["imdb"][model]
        for model in models
    ]
    below = sorted(-gain for gain in gains if abs(gain) > TOLERANCE)
    assert (len(gains), len(below)) == (4, 2)
    assert "two of the four variants are reproduced" in row
    assert "the other two are {:.2f} and {:.2f} points below".format(*below) in row
