"""Length buckets: rows, shapes, and room for what is longer than the last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.buckets import Buckets


def test_rows_by_tokens():
    assert Buckets((4, 8, 12), 5).rows.tolist() == [5, 5, 5]
    lengths = (4, 16, 20, 64, 100, 500)
    assert Buckets(lengths, 400, "tokens").rows.tolist() == [96, 24, 16, 6, 4, 1]


def test_a_bucket_has_as_many_rows_as_the_unit_says():
    assert Buckets((4, 8), 5).shapes == [(5, 4), (5, 8)]
    assert Buckets((4, 8), 16, "tokens").shapes == [(4, 4), (2, 8)]


@pytest.mark.parametrize(
    "longest, unit, shapes",
    [
        (8, "sentences", [(32, 4), (32, 8)]),
        (9, "sentences", [(32, 4), (32, 8), (8, 16)]),
        (24, "sentences", [(32, 4), (32, 8), (8, 16), (3, 24)]),
        (17, "tokens", [(8, 4), (4, 8), (1, 16), (1, 24)]),
    ],
)
def test_longer_buckets_have_fewer_rows(longest, unit, shapes):
    assert Buckets((4, 8), 32, unit).extended(longest).shapes == shapes


def test_no_longer_bucket_is_longer_than_the_most_that_is_served():
    shapes = [(32, 4), (32, 8), (8, 16), (4, 21)]
    assert Buckets((4, 8), 32).extended(20, most=21).shapes == shapes


@given(
    lengths=st.sets(st.integers(1, 40), min_size=1, max_size=4).map(sorted),
    batch_size=st.integers(1, 200),
    unit=st.sampled_from(["sentences", "tokens"]),
    longest=st.integers(1, 300),
)
def test_extended_buckets_hold_the_longest(lengths, batch_size, unit, longest):
    buckets = Buckets(lengths, batch_size, unit)
    extended = buckets.extended(longest)
    count = len(lengths)
    assert extended.shapes[:count] == buckets.shapes
    assert extended.lengths[-1] >= longest
    rows, last = buckets.shapes[-1]
    for more, (few, length) in enumerate(extended.shapes[count:], start=2):
        assert length == more * last < longest + last
        assert few == 1 or few * length**2 <= rows * last**2
