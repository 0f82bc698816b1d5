"""Translating what is typed or piped in."""

import sys
from collections.abc import Mapping
from itertools import islice

from data.progress import progress_bar
from decoding.translator import Translator
from training.errors import UserError
from training.evaluation import restore
from training.tasks import TranslationTask

LINES_AT_A_TIME = 4096


def translate_lines(
    workdir, lines, average_checkpoints: int = 0, decode: Mapping | None = None
) -> None:
    """Prints the best translation of each line.

    A terminal is answered line by line, a pipe when many have come or it ends; blank
    lines stay blank.

    Args:
      workdir: of a translation run.
      lines: text file, e.g. standard input.
      average_checkpoints, decode: as for `training.evaluation.evaluate`.

    Raises:
      UserError: if the workdir holds no translation run.
    """
    task, model, checkpoints, _ = restore(workdir, decode)
    if not isinstance(task, TranslationTask):
        raise UserError(
            f"--interactive: expected a translation run, found {task.config.task}"
        )
    if average_checkpoints:
        checkpoints.restore_average(average_checkpoints)
    else:
        checkpoints.restore_best(workdir)
    config = task.config
    typed = lines.isatty()
    settings = config.decode.copy_and_resolve_references()
    if typed:
        settings.batch_size = 1
        data = config.data
        print(
            f"{data.source_language} to {data.target_language}; end with Ctrl-D",
            file=sys.stderr,
        )
    translator = Translator(model, task.tokenizer, settings, config.data.bucket_lengths)
    lines = (line.rstrip("\r\n") for line in iter(lines.readline, ""))
    # Many lines together: those of one length share a batch.
    chunk_size = 1 if typed else LINES_AT_A_TIME
    with progress_bar(desc="translating", unit=" sentences", disable=typed) as bar:
        while chunk := list(islice(lines, chunk_size)):
            for best, *_ in translator.translate(chunk, bar.update):
                print(best.text, flush=True)
