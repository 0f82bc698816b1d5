"""Cases of damaged input; tests/fuzz.py says what may become of them."""

import pytest

from tests import forked, fuzz

pytestmark = [pytest.mark.slow]

# How many in `make test` and in `make test-all`: more where a case is quick.
COUNTS = {
    "ag_news": (5, 1_500),
    "listops": (4, 1_500),
    "imdb_folder": (2, 500),
    "imdb_tar": (2, 1_000),
    "imdb_tar_gz": (2, 1_000),
    "pairs": (2, 600),
    "pairs_gz": (2, 500),
    "generated": (2, 500),
    "learned": (1, 200),
    "run": (1, 200),
    "lines": (2, 300),
    "cluster": (14, 6_200),
    "flags": (13, 6_200),
}


def test_all_subjects_have_a_count():
    assert COUNTS.keys() == fuzz.SUBJECTS.keys()
    few, many = map(sum, zip(*COUNTS.values(), strict=True))
    assert few >= 50 and many >= 20_000


def check(name, seeds, folder):
    counts = fuzz.run_cases(name, seeds, folder)
    assert sum(counts.values()) == len(seeds)
    return counts


@pytest.mark.parametrize("name", COUNTS)
def test_damage_is_survived(name, tmp_path):
    check(name, range(COUNTS[name][0]), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTS)
def test_damage_is_survived_twenty_thousand_times(name, tmp_path, record_property):
    # In a process of its own: TensorFlow keeps some 9 MB of each opened run to the end.
    seeds = range(1000, 1000 + COUNTS[name][1])
    counts = forked.call(check, name, seeds, tmp_path)
    record_property("cases", counts)
