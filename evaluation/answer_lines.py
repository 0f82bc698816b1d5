"""Answering what is typed or piped in."""

import logging
import sys
from itertools import islice

from common.errors import UserError
from common.progress import progress_bar
from data.files import without_ends
from decoding.beam_search import IMPOSSIBLE
from evaluation.run import Run

LINES_AT_A_TIME = 4096

logger = logging.getLogger("transevolve")


def answer_lines(run: Run, lines, n_best: int | None = None) -> None:
    """Prints the model's answer to each line.

    A terminal is answered line by line, a pipe when many have come or it ends. The
    answer to a line that is no input of the model begins with "error: ".

    Args:
      run: from `evaluation.run.load_run`.
      lines: binary file, e.g. standard input.
      n_best: answer with at most so many, score<TAB>translation each, the best first,
        and an empty line after them.

    Raises:
      UserError: if the run has no such answers, or not so many; in the end, if there
        were lines that are no input.
    """
    model = run.text_model
    if n_best is None:
        _print_each(run, lines, "serving_default", lambda x: str(model.answer(x)))
        return
    _require(run, "n_best", "--n_best")
    beams = run.config.decode.beam_size
    if n_best > beams:
        raise UserError(
            f"--n_best={n_best}: expected at most the beam size, {beams}; give "
            f"--beam_size={n_best}, too"
        )

    def best(outputs):
        pairs = zip(outputs["scores"], outputs["translations"], strict=True)
        return "".join(
            f"{score:.4f}\t{text.decode()}\n"
            for score, text in islice(pairs, n_best)
            if score > IMPOSSIBLE
        )

    _print_each(run, lines, "n_best", best)


def score_lines(run: Run, lines) -> None:
    """Prints log-probability<TAB>tokens for each line, a text, or of a translator's
    text<TAB>translation.

    Args:
      run: from `evaluation.run.load_run`.
      lines: binary file, e.g. standard input.

    Raises:
      UserError: if the run has no such scores, or a line is no such text or pair.
    """
    _require(run, "score", "--score")
    columns = len(run.text_model.scored)
    _print_each(
        run, lines, "score", lambda x: f"{x['log_prob']:.4f}\t{x['tokens']}", columns
    )


def _require(run, signature, flag):
    if signature not in run.text_model.signatures:
        expected = f"a run whose answers have {signature.replace('_', ' ')}"
        raise UserError(f"{flag}: expected {expected}, found {run.config.task}")


def _print_each(run, lines, signature, show, columns=1):
    """Prints `show` of what a signature returns for each line.

    A line has as many texts as there are columns, a tab between two.
    """
    typed = lines.isatty()
    if typed:
        form = ", text<TAB>translation" if columns > 1 else ""
        print(f"{run.task.prompt}{form}; end with Ctrl-D", file=sys.stderr)
    numbered = enumerate(without_ends(iter(lines.readline, b"")), start=1)
    rows = (_split(text, number, columns) for number, text in numbered)
    # Many lines together: those of one length share a batch.
    chunk_size = 1 if typed else LINES_AT_A_TIME
    number = num_errors = 0
    with progress_bar(desc="answering", unit=" lines", disable=typed) as bar:
        for chunk in _chunks(rows, chunk_size):
            texts = map(list, zip(*chunk, strict=True))
            for outputs in run.text_model.outputs(
                signature, *texts, on_progress=bar.update
            ):
                number += 1
                print(show(outputs), flush=True)
                if outputs["truncated"]:
                    logger.warning("line %d: cut; %s", number, run.text_model.limits)
                if error := outputs.get("error"):
                    num_errors += 1
                    logger.warning("line %d: %s", number, error.decode())
    if num_errors:
        raise UserError(f"{num_errors:,} of {number:,} lines have no answer, see above")


def _chunks(rows, size):
    """Lists of so many rows; those before a row that is an error come before it."""
    chunk = []
    try:
        for row in rows:
            chunk.append(row)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except UserError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def _split(line, number, columns):
    texts = line.split(b"\t") if columns > 1 else [line]
    if len(texts) != columns:
        raise UserError(
            f"line {number}: expected text<TAB>translation, found {len(texts) - 1} tabs"
        )
    return texts
