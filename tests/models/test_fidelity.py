"""Each choice in which the paper and the authors' code differ, alone."""

import numpy as np
import pytest

from models.fidelity import CHOICES, official_choices
from tests.models.builders import build, numpy, tokens

ALL = "+".join(CHOICES)
# The last by what is drawn for them at first.
OF_ROTATIONS = {"rotation_phase", "rotation_scale", "singular_values"}


def outputs(fidelity, feed_forward="rotation"):
    model = build(fidelity=fidelity, feed_forward=feed_forward)
    return numpy(model(tokens()))


def test_a_fidelity_but_for_some_choices():
    assert official_choices("paper") == set()
    assert official_choices("official") == set(CHOICES)
    assert official_choices("paper+phase") == {"phase"}
    assert official_choices("official+phase") == set(CHOICES) - {"phase"}


@pytest.mark.parametrize(
    "fidelity", ["", "exact", "paper+", "paper+phases", "paper+phase+phase", "phase"]
)
def test_what_is_no_fidelity(fidelity):
    with pytest.raises(ValueError, match="fidelity must be paper or official, and"):
        official_choices(fidelity)


def test_all_choices_together_are_the_other_fidelity():
    for fidelity, other in (("paper", "official"), ("official", "paper")):
        np.testing.assert_array_equal(outputs(f"{fidelity}+{ALL}"), outputs(other))


@pytest.mark.parametrize("feed_forward", ["dense", "rotation"])
@pytest.mark.parametrize("choice", CHOICES)
def test_each_choice_acts_where_it_should(choice, feed_forward):
    acts = feed_forward == "rotation" or choice not in OF_ROTATIONS
    same = np.array_equal(
        outputs("paper", feed_forward), outputs(f"paper+{choice}", feed_forward)
    )
    assert same != acts
