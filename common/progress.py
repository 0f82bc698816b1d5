"""How far long work is."""

import sys

from tqdm import tqdm


def progress_bar(*iterable, **arguments) -> tqdm:
    """A tqdm bar on stderr; where no person watches, a line each ten seconds."""
    interval = 0.5 if sys.stderr.isatty() else 10
    return tqdm(*iterable, mininterval=interval, **arguments)
