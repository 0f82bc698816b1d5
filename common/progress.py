"""How far long work is."""

import logging
import sys
from contextlib import suppress

from tqdm import tqdm

SECONDS = 0.5
# Where no person watches.
SECONDS_IN_LOG = 30


class LinesAboveBars(logging.StreamHandler):
    """Writes messages above the bars of a terminal, each on lines of its own."""

    def emit(self, record):
        with tqdm.external_write_mode(self.stream):
            super().emit(record)


def progress_bar(*iterable, **arguments) -> tqdm:
    """A tqdm bar on stderr; in a log file, a line each half minute and at the end.

    A bar that is not to stay (`leave=False`) and is done in less time leaves no line.
    """
    if _is_terminal(sys.stderr):
        return tqdm(*iterable, **{"mininterval": SECONDS, **arguments})
    stays = arguments.get("leave", True) is not False
    settings = {
        "file": _Lines(sys.stderr),
        "mininterval": SECONDS_IN_LOG,
        "delay": 0 if stays else SECONDS_IN_LOG,
        "ncols": 0,  # figures alone
    }
    return tqdm(*iterable, **{**settings, **arguments, "leave": stays})


def _is_terminal(stream):
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # none, a closed one, or a program's own
        return False


class _Lines:
    """A file for tqdm: each state of a bar is a line, and nothing moves a cursor."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        text = text.replace("\x1b[A", "").strip()
        # Whoever reads it may be gone, and the work goes on.
        with suppress(AttributeError, OSError, ValueError):
            if text:
                self._stream.write(text + "\n")

    def flush(self):
        """Does nothing: standard error keeps no lines back."""
