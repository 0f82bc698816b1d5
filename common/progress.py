"""How far long work is."""

import logging
import sys

from tqdm import tqdm


def progress_bar(*iterable, **arguments) -> tqdm:
    """A tqdm bar on stderr; where no person watches, a line each ten seconds."""
    arguments["mininterval"] = 0.5 if sys.stderr.isatty() else 10
    return tqdm(*iterable, **arguments)


class LinesAboveBars(logging.StreamHandler):
    """Writes what is logged above the bars that are drawn, not into them."""

    def emit(self, record):
        try:
            tqdm.write(self.format(record), file=self.stream)
        except Exception:
            self.handleError(record)
