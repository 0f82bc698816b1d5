"""How a depth moves its state by the increments of its sublayers.

Reversible layers alone move by themselves, since they have two halves of a state
(`models.reversible`).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from common.fields import choice, optional


class ResidualStep(NamedTuple):
    """A way of stepping from depth l to l + 1.

    A sublayer is taken for a differential equation x' = f(x, l). Its increment is a
    function of x and of a number: that of the offset at which it is evaluated.

    Attributes:
      offsets: fractions of a depth at which increments are evaluated.
      take: function of x and of the increments of all sublayers, attentions first and
        the feed-forward last. It returns the next x.
    """

    offsets: tuple[float, ...]
    take: Callable[[Any, Sequence[Callable]], Any]


def _one_by_one(move):
    """Each sublayer in full, after those before it (Lie and Trotter's splitting)."""

    def take(x, increments):
        for increment in increments:
            x = move(x, increment)
        return x

    return take


def _euler(x, increment):
    return x + increment(x, 0)


def _midpoint(x, increment):
    """Of order 2 (Runge and Kutta)."""
    return x + increment(x + increment(x, 0) / 2, 1)


def _runge_kutta(x, increment):
    """Of order 4 (Runge and Kutta)."""
    first = increment(x, 0)
    second = increment(x + first / 2, 1)
    third = increment(x + second / 2, 2)
    fourth = increment(x + third, 3)
    return x + (first + 2 * second + 2 * third + fourth) / 6


def _strang(x, increments):
    """Half of each attention, the feed-forward, and the other halves in the reverse
    order (Strang's splitting, in Euler's steps)."""
    *attentions, feed_forward = increments
    for increment in attentions:
        x = x + increment(x, 0) / 2
    x = x + feed_forward(x, 0)
    for increment in reversed(attentions):
        x = x + increment(x, 1) / 2
    return x


# By name. The paper takes Euler steps: attention's, then the feed-forward's.
EULER = "euler"
RESIDUAL_STEPS = {
    EULER: ResidualStep((0.0,), _one_by_one(_euler)),
    "rk2": ResidualStep((0.0, 0.5), _one_by_one(_midpoint)),
    "rk4": ResidualStep((0.0, 0.5, 0.5, 1.0), _one_by_one(_runge_kutta)),
    "strang": ResidualStep((0.0, 0.5), _strang),
}
FIELDS = {
    "residual_step": optional(
        choice("How a depth moves by its sublayers; Euler if unset.", *RESIDUAL_STEPS)
    )
}
