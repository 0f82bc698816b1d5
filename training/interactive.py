"""Answering what is typed or piped in."""

import sys
from itertools import islice

from common.progress import progress_bar
from training.run import Run

LINES_AT_A_TIME = 4096


def answer_lines(run: Run, lines) -> None:
    """Prints the model's answer to each line.

    A terminal is answered line by line, a pipe when many have come or it ends.

    Args:
      run: from `training.run.load_run`.
      lines: text file, e.g. standard input.
    """
    typed = lines.isatty()
    if typed:
        print(f"{run.task.prompt}; end with Ctrl-D", file=sys.stderr)
    lines = (line.rstrip("\r\n") for line in iter(lines.readline, ""))
    # Many lines together: those of one length share a batch.
    chunk_size = 1 if typed else LINES_AT_A_TIME
    batch_size = 1 if typed else None
    with progress_bar(desc="answering", unit=" lines", disable=typed) as bar:
        while chunk := list(islice(lines, chunk_size)):
            for answer in run.predict(chunk, batch_size, bar.update):
                print(answer, flush=True)
