"""Means over seeds, and how they stand to published figures."""

import itertools
import math
import statistics
from typing import NamedTuple

REPRODUCED, DIFFERS = "reproduced", "differs"
NOT_RUN, OTHER_MEASURE = "not run", "other measure"
# Points of accuracy or BLEU that count as the same.
TOLERANCE = 0.5
# Standard errors to each side of a figure that an interval of 95 % has.
STANDARD_ERRORS = 1.96
ROUNDING = 1e-9
# How many standard errors from 0 a mean of 2, 3, ... numbers is by chance in one case
# of 20 (Student's t); for more numbers the last.
BY_CHANCE = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)


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


def accuracy_cells(
    tests: list[dict], key: str = "accuracy", interval_key: str = "interval"
) -> dict[str, float | None]:
    """The mean accuracy of runs on test data, in percent, as cells of a row.

    Args:
      tests: the result of each run.
      key: of the mean.
      interval_key: of half the width of its `interval`.
    """
    accuracies = [100 * test["accuracy"] for test in tests]
    examples = tests[0].get("examples") if tests else None
    cells = mean_score(accuracies).cells(key)
    return {**cells, interval_key: interval(accuracies, examples)}


def paired_gain(tests: dict[int, dict], compared_with: dict[int, dict]) -> Score:
    """How much more accurate runs are on test data than others of their seeds.

    Args:
      tests, compared_with: {seed: result of the run}.

    Returns:
      The mean difference in points, over the seeds that both have.
    """
    seeds = tests.keys() & compared_with.keys()
    return mean_score(
        100 * tests[seed]["accuracy"] - 100 * compared_with[seed]["accuracy"]
        for seed in seeds
    )


def evidence(gain: Score) -> str:
    """ "clear" if chance would give such a mean in fewer than one case of 20; else "not
    clear".

    Args:
      gain: of differences of pairs of runs, each pair with one seed.
    """
    # Pairs that are alike but for rounding are few examples of a small set.
    if gain.count < 2 or gain.deviation < ROUNDING:
        return "not clear"
    error = gain.deviation / gain.count**0.5
    bound = error * BY_CHANCE[min(gain.count, len(BY_CHANCE) + 1) - 2]
    return "clear" if abs(gain.mean) > bound else "not clear"


def compared_cells(tests: dict[int, dict], compared_with: dict[int, dict]) -> dict:
    """Accuracy on test data beside that of other runs, as cells of a row.

    Args:
      tests, compared_with: as for `paired_gain`; nothing to compare with for a row that
        is itself what others are compared with.
    """
    if not tests:
        return {"runs": 0, "badge": NOT_RUN}
    gain = paired_gain(tests, compared_with)
    return {
        **accuracy_cells([*tests.values()]),
        **gain.cells("gain"),
        "badge": evidence(gain) if gain.count else "",
        "runs": len(tests),
        "parameters": next(iter(tests.values()))["parameters"],
    }


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


def interval(accuracies: list[float], examples: int | None) -> float | None:
    """Half the width of a 95 % interval of a mean accuracy, in percent.

    It is that of the normal distribution. Its variance is that of one draw of the test
    data, which all runs share, and that of the mean of several runs.

    Args:
      accuracies: of the runs, in percent.
      examples: of the test data.

    Returns:
      None without runs, or where the number of examples is not known.
    """
    if not accuracies or not examples:
        return None
    # Two right and two wrong more: none of a hundred right is no proof of 0.
    share = (statistics.mean(accuracies) / 100 * examples + 2) / (examples + 4)
    variance = share * (1 - share) / (examples + 4)
    if len(accuracies) > 1:
        shares = [accuracy / 100 for accuracy in accuracies]
        variance += statistics.variance(shares) / len(shares)
    return 100 * STANDARD_ERRORS * math.sqrt(variance)


def order(rows: list[tuple[float, float, float]]) -> str | None:
    """Where models stand in their published order, in words.

    A difference is clear if its 95 % interval leaves out 0. The two figures are taken
    for independent. They share test data, so that this calls too few clear.

    Args:
      rows: (accuracy, half of its interval, published accuracy) of each model.

    Returns:
      None if no two published figures differ.
    """
    pairs = [
        (first, second)
        for first, second in itertools.combinations(rows, 2)
        if first[2] != second[2]
    ]
    if not pairs:
        return None
    published = clear = both = 0
    for (ours, width, theirs), (ours_2, width_2, theirs_2) in pairs:
        holds = (ours - ours_2) * (theirs - theirs_2) > 0
        is_clear = abs(ours - ours_2) > math.hypot(width, width_2)
        published += holds
        clear += is_clear
        both += holds and is_clear
    return (
        f"of {len(pairs)} pairs of models that have different published figures, "
        f"{published} stand here in the published order. The difference is clear in "
        f"{clear} pairs, {both} of them in the published order."
    )
