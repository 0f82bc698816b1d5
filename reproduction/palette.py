"""How a variant looks in every picture: its colour, dashes and marker."""

import zlib
from typing import NamedTuple

from models import variants

# Told apart with any colour vision, and at 3:1 or more on white.
COLOURS = (
    "#D55E00",
    "#AA3377",
    "#0072B2",
    "#008060",
    "#000000",
    "#8C6D00",
    "#5B8DB8",
    "#7F7F7F",
)
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


class Look(NamedTuple):
    """How to draw a variant's line. No two differ in their colour alone."""

    color: str
    linestyle: str
    marker: str


def look(variant: str, number: int = 0) -> Look:
    """The look of a variant.

    Args:
      variant: its name, known or not.
      number: of its line, where it has several of other settings.
    """
    known = [*variants(in_paper=True), *variants(in_paper=False)]
    places = {name: place for place, name in enumerate(known)}
    place = places.get(variant, zlib.crc32(variant.encode()))
    turn, place = divmod(place, len(COLOURS))
    dashes = DASHES[(turn + number) % len(DASHES)]
    return Look(COLOURS[place], dashes, MARKERS[(place + number) % len(MARKERS)])
