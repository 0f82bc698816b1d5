"""What a field of a config may hold, declared by the code that reads it.

A declaration is {name of the field: `Field`}. `docs/flags.md` is made of them.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from common.errors import UserError

INTERVAL = re.compile(r"[1-9]\d{0,8} (steps|minutes)")
# TensorFlow counts in int32.
LARGEST_WHOLE = 2**31 - 1


class Field(NamedTuple):
    """One field.

    Attributes:
      help: what it is, a sentence or less.
      expected: what it may hold, for an error's "expected ..., found ...".
      accepts: function of a value that says whether it may be held.
      changeable: whether it may differ when a run is taken up again.
    """

    help: str
    expected: str
    accepts: Callable[[Any], bool]
    changeable: bool = False


def integer(help: str, minimum: int = 1, maximum: int | None = None) -> Field:
    """A whole number from `minimum`, and up to `maximum` if that is given.

    A size has a maximum: what is larger is not built in any time, or in any memory.
    """
    end = "" if maximum is None else f" to {maximum:,}"

    def accepts(value):
        return _is_whole(value) and minimum <= value <= (maximum or math.inf)

    return Field(help, f"a whole number from {minimum}{end}", accepts)


def even(help: str, maximum: int) -> Field:
    """An even whole number from 2 to `maximum`."""
    whole = integer(help, 2, maximum)
    return whole._replace(
        expected=f"an even {whole.expected.removeprefix('a ')}",
        accepts=lambda x: whole.accepts(x) and not x % 2,
    )


def real(help: str, minimum: float, maximum: float) -> Field:
    """A number within bounds.

    Training computes in float32. The bounds of fields that are multiplied keep their
    products among its normal numbers, from 1.2e-38 to 3.4e38: what is less may count
    as 0, and train nothing.
    """

    def accepts(value):
        return _is_number(value) and minimum <= value <= maximum

    return Field(help, f"a number from {minimum:g} to {maximum:g}", accepts)


def rate(help: str) -> Field:
    """A number from 0 to below 1, not so near that float32 has few digits left."""
    return real(help, 0, 0.999999)._replace(expected="a rate from 0 to 0.999999")


def choice(help: str, *allowed: str) -> Field:
    """One of some words."""
    return Field(help, f"one of {', '.join(allowed)}", lambda x: x in allowed)


def fixed(value: Any) -> Field:
    """The value that the variant lays down."""
    return Field("The variant's.", f"{value}, the variant's", lambda x: x == value)


def boolean(help: str) -> Field:
    """True or False."""
    return Field(help, "True or False", lambda x: isinstance(x, bool))


def text(help: str) -> Field:
    """Any text but none."""
    return Field(help, "a text", lambda x: isinstance(x, str) and bool(x))


def lengths(help: str, may_be_empty: bool = False) -> Field:
    """Whole numbers above 0, each larger than the one before."""

    def accepts(value):
        return (
            isinstance(value, tuple | list)
            and (may_be_empty or len(value) > 0)
            and all(_is_whole(x) and x > 0 for x in value)
            and list(value) == sorted(set(value))
        )

    return Field(help, "increasing whole numbers above 0", accepts)


def interval(help: str) -> Field:
    """A text such as "500 steps" or "10 minutes", for `parse_interval`."""
    expected = "a number of steps or minutes, as in '500 steps' or '10 minutes'"
    return Field(help, expected, lambda x: isinstance(x, str) and INTERVAL.fullmatch(x))


def parse_interval(text: str) -> tuple[int, str]:
    """(500, "steps") of "500 steps"."""
    number, unit = text.split()
    return int(number), unit


def changeable(field: Field) -> Field:
    """The field, which may differ when a run is taken up again."""
    return field._replace(changeable=True)


def optional(field: Field) -> Field:
    """The field, or None."""
    return field._replace(
        expected=f"{field.expected}, or unset",
        accepts=lambda x: x is None or field.accepts(x),
    )


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value):
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def below(part: str, fields: Mapping[str, Field]) -> dict[str, Field]:
    """The fields by their whole names, e.g. "train.steps" of the part "train"."""
    return {f"{part}.{name}": field for name, field in fields.items()}


def fail(name: str, expected: str, value) -> None:
    """Raises the `UserError` of a field, by its whole name, e.g. "train.steps"."""
    raise UserError(f"--config.{name}: expected {expected}, found {value}")


def check(fields: Mapping[str, Field], values: Mapping) -> None:
    """Checks values, {whole name: value}, against what is declared for them.

    Raises:
      UserError: naming the first bad field, what was expected and what was found.
    """
    for name, value in values.items():
        if name in fields and not fields[name].accepts(value):
            fail(name, fields[name].expected, value)
        numbers = value if isinstance(value, tuple | list) else (value,)
        if any(_is_whole(x) and abs(x) > LARGEST_WHOLE for x in numbers):
            fail(name, "whole numbers below 2,147,483,648", value)
