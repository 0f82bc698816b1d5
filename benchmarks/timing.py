"""Times of several calls, taken by turns, and what rows say of them."""

import statistics
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from common.progress import progress_bar


def interleave(
    calls: dict[Hashable, Callable], rounds: int, title: str = "timing"
) -> dict:
    """Seconds of each call in each of `rounds` rounds.

    In a round every call is made once, so a machine that slows down slows all of
    them; each round starts with another call, so none always follows the same one.
    One round before the first warms up, and does not count.

    Args:
      calls: {name: function without arguments, done when it returns}.
      rounds: rounds that count.

    Returns:
      {name: [seconds, ...]}, one for each round.
    """
    seconds = {name: [] for name in calls}
    total = (rounds + 1) * len(calls)
    with progress_bar(total=total, desc=title, unit=" calls") as progress:
        for turn in range(rounds + 1):
            order = deque(calls)
            order.rotate(-turn)
            for name in order:
                start = time.perf_counter()
                calls[name]()
                if turn > 0:
                    seconds[name].append(time.perf_counter() - start)
                progress.update()
    return seconds


def summary(times: list[float], digits: int) -> dict[str, float]:
    """The median of the rounds and their spread, the largest minus the smallest."""
    return {
        "seconds": round(statistics.median(times), digits),
        "spread": round(max(times) - min(times), digits),
    }


def speedup(seconds: dict, name: Hashable, baseline: Hashable) -> float:
    """How many times as fast as the baseline: the median of the rounds' ratios."""
    pairs = zip(seconds[baseline], seconds[name], strict=True)
    return statistics.median(slow / fast for slow, fast in pairs)


def line(lengths: Sequence[int], values: Sequence[float]) -> tuple[float, float, float]:
    """Least squares of values against lengths.

    Returns:
      The constant, the slope, and the largest relative error.
    """
    slope, constant = np.polyfit(lengths, values, 1)
    errors = (constant + slope * np.array(lengths)) / values - 1
    return float(constant), float(slope), round(float(np.abs(errors).max()), 3)
