"""Pictures as PNG files."""

import functools
import io
from pathlib import Path

from matplotlib import font_manager
from matplotlib.figure import Figure
from PIL import Image
from PIL.Image import Dither

from common.paths import write_whole


def write_png(
    figure: Figure, path: Path, dpi: int = 120, colors: int | None = None
) -> None:
    """Writes a figure, whole or not at all; the same figure gives the same file.

    Args:
      figure: of matplotlib.
      path: of the file; its folder is made.
      dpi: pixels per inch.
      colors: the most that it may have. Lines on white need few, which takes a quarter
        of the bytes.
    """
    drawn = io.BytesIO()
    # Without the library's version.
    figure.savefig(drawn, format="png", dpi=dpi, metadata={"Software": None})
    if colors:
        picture = Image.open(drawn).convert("RGB")
        drawn = io.BytesIO()
        picture = picture.quantize(colors, dither=Dither.NONE)
        picture.save(drawn, format="png", optimize=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, drawn.getvalue())


def drawable(text: str) -> str:
    """A text with characters that the font of pictures lacks by number, as U+4E2D."""
    return "".join(
        letter
        if letter.isprintable() and ord(letter) in _letters()
        else f"U+{ord(letter):04X}"
        for letter in text
    )


@functools.cache
def _letters():
    font = font_manager.findfont(font_manager.FontProperties())
    return font_manager.get_font(font).get_charmap().keys()
