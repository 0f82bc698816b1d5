"""Means over seeds, and how they stand to published figures."""

import math
import statistics
from typing import NamedTuple

REPRODUCED, DIFFERS = "reproduced", "differs"
NOT_RUN, OTHER_MEASURE = "not run", "other measure"
# Points of accuracy or BLEU that count as the same.
TOLERANCE = 0.5


class Score(NamedTuple):
    """A mean over runs.

    Attributes:
      mean: None without runs.
      deviation: the sample's standard deviation; None of fewer than two runs.
      count: how many runs there are.
    """

    mean: float | None
    deviation: float | None
    count: int


def mean_score(values) -> Score:
    """The mean of the values that are there; None and what is not finite is not."""
    values = [x for x in values if x is not None and math.isfinite(x)]
    return Score(
        statistics.mean(values) if values else None,
        statistics.stdev(values) if len(values) > 1 else None,
        len(values),
    )


def difference(found: float | None, published: float | None) -> float | None:
    """Ours minus the published one, where both are there."""
    if found is None or published is None:
        return None
    return found - published


def badge(
    found: float | None,
    published: float | None,
    same_measure: bool,
    spread: float = 0.0,
    tolerance: float = TOLERANCE,
) -> str:
    """How a figure stands to the published one.

    Args:
      found: ours; None if it has not been run.
      published: None if there is none.
      same_measure: whether both measure the same on the same data.
      spread: of the published figure, in its unit.
      tolerance: how far both may be apart and count as the same, likewise.
    """
    if found is None:
        return NOT_RUN
    if published is None or not same_measure:
        return OTHER_MEASURE
    # Rounded, since published figures are: 0.5 apart is not 0.5000001 apart.
    apart = round(abs(found - published), 6)
    return REPRODUCED if apart <= max(tolerance, spread) else DIFFERS
