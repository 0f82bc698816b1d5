"""Cases of damaged input; tests/fuzz.py says what may become of them."""

import pytest

from tests import fuzz

pytestmark = [pytest.mark.slow]

# How many in `make test`: more where a case is quick, or the files are many.
COUNTS = {
    "ag_news": 45,
    "listops": 40,
    "imdb_folder": 15,
    "imdb_tar": 15,
    "imdb_tar_gz": 15,
    "pairs": 15,
    "pairs_gz": 10,
    "generated": 15,
    "learned": 10,
    "run": 8,
    "lines": 10,
    "cluster": 48,
    "flags": 60,
}


def test_all_subjects_have_a_count():
    assert COUNTS.keys() == fuzz.SUBJECTS.keys() and sum(COUNTS.values()) >= 300


@pytest.mark.parametrize("name", COUNTS)
def test_damage_is_survived(name, tmp_path):
    counts = fuzz.run_cases(name, range(COUNTS[name]), tmp_path)
    print(name, counts)
    assert sum(counts.values()) == COUNTS[name]


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTS)
def test_damage_is_survived_twenty_thousand_times(name, tmp_path):
    number = round(20_000 * COUNTS[name] / sum(COUNTS.values())) + 1
    counts = fuzz.run_cases(name, range(1000, 1000 + number), tmp_path)
    print(name, counts)
    assert sum(counts.values()) == number
