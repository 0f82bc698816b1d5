"""Answering what is typed or piped in."""

import sys
from collections.abc import Callable, Iterator
from itertools import islice

from common.errors import UserError
from common.progress import progress_bar
from decoding.beam_search import IMPOSSIBLE
from training.run import Run

LINES_AT_A_TIME = 4096


def answer_lines(run: Run, lines, n_best: int | None = None) -> None:
    """Prints the model's answer to each line.

    A terminal is answered line by line, a pipe when many have come or it ends.

    Args:
      run: from `training.run.load_run`.
      lines: text file, e.g. standard input.
      n_best: answer with so many, score<TAB>translation each, the best first.

    Raises:
      UserError: if the run has no such answers, or not so many.
    """
    if n_best is None:
        _print_each(lines, run.task.prompt, run.predict)
        return
    _require(run, "n_best", "--n_best")
    beams = run.config.decode.beam_size
    if n_best > beams:
        raise UserError(
            f"--n_best={n_best}: expected at most the beam size, {beams}; give "
            f"--beam_size={n_best}, too"
        )

    def answer(texts, on_progress):
        for found in run.text_model.outputs("n_best", texts, on_progress=on_progress):
            pairs = zip(found["scores"], found["translations"], strict=True)
            yield "\n".join(
                f"{score:.4f}\t{text.decode()}"
                for score, text in islice(pairs, n_best)
                if score > IMPOSSIBLE
            )

    _print_each(lines, run.task.prompt, answer)


def score_lines(run: Run, lines) -> None:
    """Prints log-probability<TAB>tokens for each line text<TAB>translation.

    Args:
      run: from `training.run.load_run`.
      lines: text file, e.g. standard input.

    Raises:
      UserError: if the run has no such scores, or a line is no such pair.
    """
    _require(run, "score", "--score")
    number = 0

    def answer(pairs, on_progress):
        nonlocal number
        columns = [], []
        for pair in pairs:
            number += 1
            if pair.count("\t") != 1:
                raise UserError(
                    f"line {number}: expected text<TAB>translation, found "
                    f"{pair.count(chr(9))} tabs"
                )
            for column, text in zip(columns, pair.split("\t"), strict=True):
                column.append(text)
        for found in run.text_model.outputs("score", *columns, on_progress=on_progress):
            yield f"{found['log_prob']:.4f}\t{found['tokens']}"

    _print_each(lines, f"{run.task.prompt}: text<TAB>translation", answer)


def _require(run, signature, flag):
    if signature not in run.text_model.signatures:
        raise UserError(f"{flag}: expected a translator, found {run.config.task}")


def _print_each(lines, prompt, answer: Callable[..., Iterator]):
    """Prints what `answer` gives for each of a list of lines."""
    typed = lines.isatty()
    if typed:
        print(f"{prompt}; end with Ctrl-D", file=sys.stderr)
    lines = (line.rstrip("\r\n") for line in iter(lines.readline, ""))
    # Many lines together: those of one length share a batch.
    chunk_size = 1 if typed else LINES_AT_A_TIME
    with progress_bar(desc="answering", unit=" lines", disable=typed) as bar:
        while chunk := list(islice(lines, chunk_size)):
            for line in answer(chunk, bar.update):
                print(line, flush=True)
