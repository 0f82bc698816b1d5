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

    def cells(self, key: str) -> dict[str, float | None]:
        """The mean and the deviation as cells of a row; see `sheet.Column`."""
        return {key: self.mean, f"{key}_deviation": self.deviation}


def mean_score(values) -> Score:
    """The mean of the values that are there; None and what is not finite is not."""
    values = [x for x in values if x is not None and math.isfinite(x)]
    return Score(
        statistics.mean(values) if values else None,
        statistics.stdev(values) if len(values) > 1 else None,
        len(values),
    )


def verdict(
    ours: float | None,
    published: float | None,
    same_measure: bool,
    spread: float = 0.0,
    prefix: str = "",
) -> dict[str, float | str | None]:
    """How a figure stands to the published one, as cells of a row.

    Args:
      ours: None if it has not been run.
      published: None if there is none.
      same_measure: whether both measure the same on the same data.
      spread: of the published figure, in its unit.
      prefix: of the cells' names.

    Returns:
      The `difference`, ours minus the published one, and the `badge`.
    """
    difference = None if None in (ours, published) else ours - published
    if ours is None:
        badge = NOT_RUN
    elif difference is None or not same_measure:
        badge = OTHER_MEASURE
    else:
        # Rounded, since published figures are: 0.5 apart is not 0.5000001 apart.
        is_near = round(abs(difference), 6) <= max(TOLERANCE, spread)
        badge = REPRODUCED if is_near else DIFFERS
    return {f"{prefix}difference": difference, f"{prefix}badge": badge}
