"""docs/claims.md: what the paper's tables give, computed from `configs.published`."""

import itertools
import re

import numpy as np
import pytest

from configs import published
from configs.published import ACCURACY, BLEU, OTHER_ACCURACY, SPEED
from data.datasets import listops
from models import build_classifier, variant_config, variants
from tests.conftest import ROOT
from tests.models.builders import count_parameters

PAGE = (ROOT / "docs/claims.md").read_text()
EVOLVING = ["randomff-1", "randomff-2", "fullff-1", "fullff-2"]
EN_DE, EN_FR = BLEU["en", "de"], BLEU["en", "fr"]
COLUMNS = [*EN_DE.values(), *EN_FR.values()]
RANDOM = [f"transevolve-randomff-{blocks}" for blocks in (1, 2)]
SYNTHESIZER = "transformer-synthesizer-dense"
REFORMER, RFA = "transformer-reformer", "transformer-rfa"


def of(figures, name):
    return figures[f"transevolve-{name}"]


def gain(figures, name):
    return of(figures, name) - figures["transformer"]


def share_of_parameters(name):
    sizes = published.TRANSLATION_PARAMETERS
    return 100 * of(sizes, name) / sizes["transformer"]


def shares_of_bleu():
    return [100 * one[name] / one["transformer"] for one in COLUMNS for name in RANDOM]


def bleu_steps():
    """(steps to a larger TransEvolve with more BLEU, all steps)."""
    rises = [
        of(one, larger) > of(one, smaller)
        for one in COLUMNS
        for smaller, larger in itertools.pairwise(EVOLVING)
    ]
    return sum(rises), len(rises)


def above_the_transformer():
    above = [gain(one, name) > 0 for one in ACCURACY.values() for name in EVOLVING]
    return sum(above), len(above)


def rank(task, name):
    figures = sorted((of(ACCURACY[task], other) for other in EVOLVING), reverse=True)
    return 1 + figures.index(of(ACCURACY[task], name))


def above_rfa():
    least = OTHER_ACCURACY["char_imdb"][RFA]
    (name,) = (name for name in EVOLVING if of(ACCURACY["char_imdb"], name) > least)
    return name.replace("ff", "FF")


def one_block_above_two():
    figures = ACCURACY["listops"]
    above = [
        of(figures, f"{kind}-1") > of(figures, f"{kind}-2")
        for kind in ("randomff", "fullff")
    ]
    return sum(above), len(above)


def random_where_it_should_be():
    right = [
        (
            of(ACCURACY[task], f"randomff-{blocks}")
            > of(ACCURACY[task], f"fullff-{blocks}")
        )
        == (task in ("listops", "char_imdb"))
        for task in ACCURACY
        for blocks in (1, 2)
    ]
    return sum(right), len(right)


def sizes():
    """Parameters over those of a Transformer of width 512, in percent."""

    def size(name, width):
        config = {**variant_config(name), "hidden_dim": width, "ffn_dim": 4 * width}
        symbols = len(listops.SYMBOLS) + 1  # and padding
        return count_parameters(
            build_classifier, {**config, "num_heads": 8}, symbols, 10
        )

    largest = size("transformer", 512)
    names = [name for name in variants(in_paper=True) if name != "transformer"]
    return [100 * size(name, 256) / largest for name in names]


def speeds():
    return [speed for one in SPEED.values() for speed in one.values()]


def faster(first, second):
    """At how many lengths the first of each pair is faster, and as fast."""
    pairs = [
        (of(SPEED, a)[length], of(SPEED, b)[length])
        for a, b in zip(first, second, strict=True)
        for length in of(SPEED, a)
    ]
    above, equal = sum(a > b for a, b in pairs), sum(a == b for a, b in pairs)
    return f"{above} of {len(pairs)} pairs, {equal} equal"


def listops_systems():
    most = max(OTHER_ACCURACY["listops"].values())
    above = [of(ACCURACY["listops"], name) > most for name in EVOLVING]
    return f"{sum(above)} of {len(above)}"


def bleu(figures, test_set):
    return f"{abs(gain(figures[test_set], 'fullff-2')):.1f} BLEU"


def points(task, name, model="transformer"):
    other = {**ACCURACY[task], **OTHER_ACCURACY[task]}[model]
    return f"{of(ACCURACY[task], name) - other:.1f} points"


# What the column "its tables give" has, by the first words of the row.
GIVEN = {
    "fullFF-2's gain over the Transformer, En-Fr": bleu(EN_FR, "newstest2014"),
    "the same gain again": bleu(EN_FR, "newstest2014"),
    "fullFF-2's gain, En-De 2013": bleu(EN_DE, "newstest2013"),
    "fullFF-2's loss": bleu(EN_DE, "newstest2014"),
    "parameters that fullFF-2": f"{100 - share_of_parameters('fullff-2'):.1f} %",
    "randomFF's share of the Transformer's parameters": " and ".join(
        f"{share_of_parameters(f'randomff-{blocks}'):.1f}" for blocks in (1, 2)
    )
    + " %",
    "randomFF's share of the Transformer's BLEU": (
        f"{min(shares_of_bleu()):.1f} to {max(shares_of_bleu()):.1f} %"
    ),
    "BLEU falls": "{} of {} steps".format(*bleu_steps()),
    "each TransEvolve is above the Transformer": "{} of {} figures".format(
        *above_the_transformer()
    ),
    "fullFF-1's gain over Synthesizer": points("ag_news", "fullff-1", SYNTHESIZER),
    "fullFF-2's gain over Synthesizer": points("imdb", "fullff-2", SYNTHESIZER),
    "fullFF-2's gain over the Transformer, IMDB": points("imdb", "fullff-2"),
    "fullFF-1 is the best": (
        f"rank {rank('ag_news', 'fullff-1')} and {rank('imdb', 'fullff-1')} of 4"
    ),
    "randomFF-1's gain over Reformer": points("listops", "randomff-1", REFORMER),
    "randomFF-1's gain over the Transformer": points("listops", "randomff-1"),
    "each TransEvolve is above all other systems": listops_systems(),
    "those above RFA": f"{above_rfa()} alone",
    "randomFF-2's gain over RFA": points("char_imdb", "randomff-2", RFA),
    "randomFF-2's gain over the Transformer": points("char_imdb", "randomff-2"),
    "one block of six depths": "{} of {} pairs".format(*one_block_above_two()),
    "randomFF is above fullFF": "{} of {} pairs".format(*random_where_it_should_be()),
    "training is faster": (
        f"{sum(speed > 1 for speed in speeds())} of {len(speeds())} figures"
    ),
    "speed-up of training": f"{min(speeds())} to {max(speeds())}",
    "randomFF is faster": faster(EVOLVING[:2], EVOLVING[2:]),
    "one block is faster": faster(EVOLVING[::2], EVOLVING[1::2]),
}


def rows():
    """{the first cell: the other cells} of the page's tables of claims."""
    tables = re.findall(r"^\| claim .*\n\|--.*\n((?:\|.*\n)+)", PAGE, flags=re.M)
    lines = "".join(tables).splitlines()
    return {
        name: cells
        for name, *cells in (line.strip("| ").split(" | ") for line in lines)
    }


@pytest.mark.parametrize("claim", GIVEN)
def test_the_tables_give_what_the_page_says(claim):
    (cells,) = (cells for name, cells in rows().items() if name.startswith(claim))
    assert cells[2] == GIVEN[claim]


def test_no_claim_is_left_out():
    assert len(rows()) == len(GIVEN) + 1  # sizes are counted


@pytest.mark.long
def test_sizes():
    least, *_, most = sorted(sizes())
    (cells,) = (cells for name, cells in rows().items() if "of width 512" in name)
    assert cells[2] == f"{least:.0f} to {most:.0f} %"


def test_hours():
    hours = published.TRAINING_HOURS
    ratio = of(hours, "fullff-2") / of(hours, "randomff-1")
    assert f"Their ratio is {ratio:.1f}." in PAGE
    speeds = zip(
        *(of(SPEED, x).values() for x in ("randomff-1", "fullff-2")), strict=True
    )
    ratios = [f"{random / full:.1f}" for random, full in speeds]
    assert f"have a ratio of {min(ratios)} to {max(ratios)}." in PAGE


def test_five_of_six_shares_of_bleu_are_above():
    assert sum(share > 85 for share in shares_of_bleu()) == 5
    assert min(shares_of_bleu()) == pytest.approx(100 * 23.1 / 27.3)


def test_by_the_better_of_each_random_is_above_in_long_tasks_alone():
    for task, figures in ACCURACY.items():
        random, full = (
            max(of(figures, f"{kind}-{blocks}") for blocks in (1, 2))
            for kind in ("randomff", "fullff")
        )
        assert (random > full) == (task in ("listops", "char_imdb"))


def test_the_mean_of_appendix_b():
    lines = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| (.*) \|$", PAGE, flags=re.M)
    assert len(lines) == 3
    normal = np.random.default_rng(0).normal(size=(2, 1_000_000))
    for sigma, kappa, rest in lines:
        sigma, kappa = float(sigma), float(kappa)
        drawn, mean, printed = map(float, rest.split(" | "))
        cosines = np.cos(sigma * kappa * normal)
        assert drawn == pytest.approx(np.mean(cosines[0] * cosines[1]), abs=2e-3)
        assert mean == pytest.approx(np.exp(-((sigma * kappa) ** 2)), abs=6e-4)
        assert printed == pytest.approx(np.exp(-(sigma**2) * kappa / 2), abs=6e-4)
