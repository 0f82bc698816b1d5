"""How a depth moves its state: x' = f(x, l) from l to l + 1."""

from collections.abc import Callable
from typing import Any, NamedTuple


class ResidualStep(NamedTuple):
    """A way of stepping.

    Attributes:
      offsets: at which fractions of a depth the increment is evaluated.
      take: function of x and of the increment, a function of x and of the number of the
        offset. It returns the next x.
    """

    offsets: tuple[float, ...]
    take: Callable[[Any, Callable], Any]


def _euler(x, increment):
    return x + increment(x, 0)


# By name. The paper takes Euler steps: attention's, then the feed-forward's.
RESIDUAL_STEPS = {"euler": ResidualStep((0.0,), _euler)}
