"""docs/claims.md holds what `tests.configs.claims` computes."""

import re

import numpy as np
import pytest

from configs import published
from configs.published import ACCURACY, SPEED
from tests.configs.claims import CLAIMS, of, shares_of_bleu
from tests.conftest import ROOT, SHARED

PAGE = (ROOT / "docs/claims.md").read_text()


def rows():
    """{the first cell: the other cells} of the page's tables of claims."""
    tables = re.findall(r"^\| claim .*\n\|--.*\n((?:\|.*\n)+)", PAGE, flags=re.M)
    lines = "".join(tables).splitlines()
    return {
        name: cells
        for name, *cells in (line.strip("| ").split(" | ") for line in lines)
    }


def row(claim):
    (cells,) = (cells for name, cells in rows().items() if name.startswith(claim))
    return cells


def agrees(says, gives):
    """Whether what the tables give is what the paper says, cells of the page both."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", gives)]
    match says.split():
        case ["above", limit, *_]:
            return min(numbers) > float(limit)
        case ["below", limit, *_]:
            return max(numbers) < float(limit)
        case ["always" | "all", *_]:
            return numbers[0] == numbers[1]
        case ["never"]:
            return numbers[0] == 0
        case [number, "points"]:
            return numbers == [float(number)]
    return says == gives


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_tables_give_what_the_page_says(claim):
    _, says, *shown, agree = row(claim)
    _, compute, *arguments = CLAIMS[claim]
    assert shown == [*compute(*arguments)]
    assert (agree == "yes") == agrees(says, shown[1])


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_paper_says_what_the_page_says(claim):
    paper = next((SHARED.parent / "paper").glob("001_*"), None)
    if not paper:
        pytest.skip("no text of the paper beside this checkout")
    (match,) = re.finditer(CLAIMS[claim][0], " ".join(paper.read_text().split()))
    assert not match.lastindex or match[1] in row(claim)[1].split()


def test_no_claim_is_left_out():
    assert len(rows()) == len(CLAIMS)
    agree = [cells[-1] for cells in rows().values()].count("yes")
    counts = rf"\[{len(CLAIMS)} claims held to its .*, of which {agree} agree in full"
    assert re.search(counts, (ROOT / "README.md").read_text())
    outcomes = (ROOT / "docs/results/README.md").read_text()
    assert f"| {agree} of {len(CLAIMS)} claims agree in full |" in outcomes


def test_ratios_of_hours_are_those_of_speeds():
    hours = published.TRAINING_HOURS
    ratio = of(hours, "fullff-2") / of(hours, "randomff-1")
    assert f"Their ratio is {ratio:.1f}." in PAGE
    speeds = zip(
        *(of(SPEED, x).values() for x in ("randomff-1", "fullff-2")), strict=True
    )
    ratios = [f"{random / full:.1f}" for random, full in speeds]
    assert f"have a ratio of {min(ratios)} to {max(ratios)}." in PAGE


def test_five_of_six_shares_of_bleu_are_above():
    assert sum(share > 85 for share, *_ in shares_of_bleu()) == 5


def test_by_the_better_of_each_random_is_above_in_long_tasks_alone():
    for task, figures in ACCURACY.items():
        random, full = (
            max(of(figures, f"{kind}-{blocks}") for blocks in (1, 2))
            for kind in ("randomff", "fullff")
        )
        assert (random > full) == (task in ("listops", "char_imdb"))


def test_the_error_is_that_of_the_page_on_analysis():
    analysis = (ROOT / "docs/analysis.md").read_text()
    (figures,) = re.findall(
        r"^\| `transevolve-randomff-1` .*\n.*\n\| \| ListOps \| (\S+) \| (\S+) \|",
        analysis,
        flags=re.M,
    )
    measured = "| {} at depth 2, {} at depth 6 |".format(*figures)
    assert PAGE.count(measured) == PAGE.count(" at depth 6 |") == 2


def test_the_mean_of_appendix_b():
    lines = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| (.*) \|$", PAGE, flags=re.M)
    assert len(lines) == 4
    normal = np.random.default_rng(0).normal(size=(2, 1_000_000))
    for sigma, kappa, rest in lines:
        sigma, kappa = float(sigma), float(kappa)
        drawn, mean, printed = map(float, rest.split(" | "))
        cosines = np.cos(sigma * kappa * normal)
        assert drawn == pytest.approx(np.mean(cosines[0] * cosines[1]), abs=2e-3)
        assert mean == pytest.approx(np.exp(-((sigma * kappa) ** 2)), abs=6e-4)
        assert printed == pytest.approx(np.exp(-(sigma**2) * kappa / 2), abs=6e-4)
