"""How a variant looks in every picture: its colour, dashes and marker."""

import zlib
from typing import NamedTuple

from matplotlib.colors import to_rgb

from models import bases

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
DASHES = (
    "-",
    (0, (6, 2)),
    (0, (3, 1)),
    (0, (1, 1)),
    (0, (5, 1, 1, 1)),
    (0, (1, 3)),
)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


class Look(NamedTuple):
    """How to draw a variant's line. No two differ in their colour alone."""

    color: str
    linestyle: str | tuple
    marker: str

    @property
    def text_color(self) -> tuple[float, float, float]:
        """A darker shade of the colour, in which words have 4.5:1 on white."""
        return tuple(0.75 * part for part in to_rgb(self.color))


def look(variant: str, number: int = 0) -> Look:
    """The look of a variant: its model's colour and marker, and dashes of its own.

    Args:
      variant: its name, known or not.
      number: of its line, where it has several of other settings.
    """
    base_of = bases()
    models = list(dict.fromkeys(base_of.values()))
    if variant in base_of:
        base = base_of[variant]
        forms = [name for name in base_of if base_of[name] == base]
        place, form = models.index(base), forms.index(variant)
    else:
        # Colours that no model of ours has.
        more, form = divmod(zlib.crc32(variant.encode()), len(DASHES))
        place = len(models) + more % max(1, len(COLOURS) - len(models))
    color = COLOURS[place % len(COLOURS)]
    # Where dashes begin again, markers differ.
    again, dashes = divmod(form + number, len(DASHES))
    marker = MARKERS[(place + number + again) % len(MARKERS)]
    return Look(color, DASHES[dashes], marker)
