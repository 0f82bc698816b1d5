"""Reversible residuals: layers whose backward pass needs no stored activations."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from models.gradients import custom_gradient, pulled_back


class Increment(NamedTuple):
    """What a sublayer adds.

    Attributes:
      function: of the sublayer's input, (batch, length, width).
      layers: those that it calls; no other increment calls them.
    """

    function: Callable[[Any], Any]
    layers: Sequence[keras.layers.Layer]

    @property
    def weights(self):
        return [x for layer in self.layers for x in layer.trainable_variables]

    @property
    def states(self):
        """Those of random numbers among them."""
        return [x for layer in self.layers for x in layer.non_trainable_variables]

    def __call__(self, x, dtype, weights, states):
        """The increment, in the dtype of x, and the states after it. It depends on what
        is given alone: evaluated again, it has the same dropout."""
        given = [*zip(self.weights, weights, strict=True)]
        given += zip(self.states, states, strict=True)
        with keras.StatelessScope(state_mapping=given) as scope:
            increment = ops.cast(self.function(ops.cast(x, dtype)), x.dtype)
        return increment, [scope.get_current_value(state) for state in self.states]


def take(x, mask, increments: Callable[[Any], Sequence[Increment]]):
    """Moves two halves of the state, both x at first, by increments in turn.

        y1 = x1 + F(x2),   y2 = x2 + G(y1)

    (Gomez et al. 2017, section 3; Kitaev et al. 2020, section 4). F is attention and G
    the feed-forward. The backward pass goes back by x2 = y2 - G(y1) and
    x1 = y1 - F(x2), and evaluates each increment once more. So it needs the last halves
    alone. They are float32 whatever the dtype of x, since rounding adds up on the way.

    Args:
      x: (batch, length, width).
      mask: what `increments` takes, if it is not None.
      increments: function of the mask, None by default, that makes them.

    Returns:
      The mean of both halves.
    """
    variables = [(each.weights, each.states) for each in increments(mask)]
    sizes = [(len(weights), len(states)) for weights, states in variables]
    dtype = keras.backend.standardize_dtype(x.dtype)
    masks = [] if mask is None else [mask]

    @custom_gradient
    def move(x, *values):
        made = increments(*values[: len(masks)])
        given = _parted(values[len(masks) :], sizes)
        parts = [(each, *values) for each, values in zip(made, given, strict=True)]
        halves, after = [x, x], []
        for number, (increment, weights, states) in enumerate(parts):
            moved, other = number % 2, 1 - number % 2
            added, states = increment(halves[other], dtype, weights, states)
            halves[moved] = halves[moved] + added
            after += states

        def backward(*slopes):
            half = slopes[0] / 2
            slopes, now, by_values = [half, half], list(halves), []
            for number, (increment, weights, states) in reversed([*enumerate(parts)]):
                moved, other = number % 2, 1 - number % 2

                def again(x, *weights, increment=increment, states=states):
                    return increment(x, dtype, weights, states)[0]

                added, (by_x, *by_weights) = pulled_back(
                    again, (now[other], *weights), slopes[moved]
                )
                now[moved] = now[moved] - added
                slopes[other] = slopes[other] + by_x
                by_values = [*by_weights, *[None] * len(states), *by_values]
                # Made to need this gradient: else TensorFlow may go back through all
                # increments first, and keep what they evaluate.
                total = ops.sum(by_x)
                now = [ops.where(ops.isnan(total), total, x) for x in now]
            return slopes[0] + slopes[1], *[None] * len(masks), *by_values

        return ((halves[0] + halves[1]) / 2, *after), backward

    # Copies, since states change before the backward pass, on PyTorch in place.
    values = [ops.copy(x.value) for of_one in variables for xs in of_one for x in xs]
    mean, *after = move(ops.cast(x, "float32"), *masks, *values)
    states = (state for _, of_one in variables for state in of_one)
    for state, value in zip(states, after, strict=True):
        state.assign(value)
    return ops.cast(mean, dtype)


def _parted(values, sizes):
    """The weights and the states of each increment, of all in a row."""
    start = 0
    for num_weights, num_states in sizes:
        middle, end = start + num_weights, start + num_weights + num_states
        yield values[start:middle], values[middle:end]
        start = end
