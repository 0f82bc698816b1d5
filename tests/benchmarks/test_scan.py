"""The forms of the delta rule that are timed beside each other."""

import numpy as np
import pytest

from benchmarks import scan


@pytest.mark.parametrize("function", [lambda order: order, scan._trained])
def test_both_forms_give_the_same(function):
    given = scan._draw(200)  # several chunks
    chunked, by_position = (
        function(order)(*given) for order in (scan.in_chunks, scan.by_positions)
    )
    for ours, theirs in zip(chunked, by_position, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_row_for_each_form_and_mode():
    rows = list(scan.measure([3], rounds=1))
    assert [(row["order"], row["mode"]) for row in rows] == [
        (order, mode)
        for mode in ("inference", "train")
        for order in (scan.CHUNKS, scan.POSITIONS)
    ]
    assert all(row["speedup"] == 1 for row in rows if row["order"] == scan.POSITIONS)
