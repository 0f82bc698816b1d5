"""What declared fields accept and refuse."""

import math

import pytest

from common import fields
from common.errors import UserError

DECLARED = {
    "whole": (fields.integer("."), [1, 5], [0, -1, 1.0, True, "1", None]),
    "seed": (fields.integer(".", 0, 10), [0, 10], [11, -1, False]),
    "real": (
        fields.real(".", 1e-6, 2),
        [1e-6, 1, 0.5, 2],
        [0, 9e-7, 2.1, math.inf, math.nan, True, "x"],
    ),
    "rate": (fields.rate("."), [0, 0.99], [1, 1 - 1e-11, -0.1, math.nan, True]),
    "choice": (fields.choice(".", "a", "b"), ["a"], ["c", None]),
    "text": (fields.text("."), ["a"], ["", None, 3]),
    "lengths": (
        fields.lengths("."),
        [(1,), [1, 2]],
        [(), (2, 1), (1, 1), (1.5,), (True,), (0,), "12", None],
    ),
    "optional": (fields.optional(fields.integer(".")), [None, 1], [0, "a"]),
}


@pytest.mark.parametrize("name", DECLARED)
def test_what_a_field_may_hold(name):
    field, good, bad = DECLARED[name]
    for value in good:
        fields.check({"train.x": field}, {"train.x": value})
    for value in bad:
        with pytest.raises(UserError) as error:
            fields.check({"train.x": field}, {"train.x": value})
        assert str(error.value) == (
            f"--config.train.x: expected {field.expected}, found {value}"
        )
