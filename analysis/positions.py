"""How well a language model predicts a token, by the token's place in its document."""

import numpy as np

from analysis.comparable import check_comparable, run_name
from common.errors import UserError
from common.progress import progress_bar
from evaluation.run import Run
from reporting.plots import plot_against_length
from reporting.tables import markdown_table
from tasks.language_modelling import LanguageModellingTask


def by_position(run: Run) -> list[dict]:
    """Perplexity a token of the test data, by the token's place in its line.

    Args:
      run: of a language model. It reads the text as its evaluation does, in segments
        and with a memory if it has one.

    Returns:
      Rows with `model`, `length`, `tokens` and `perplexity`. A row has the `tokens`
      tokens whose place in their line is `length` or less, and above the `length` of
      the row before; lengths are powers of two.

    Raises:
      UserError: if the run is of another task, or its data cannot be had.
    """
    _check_language_model(run)
    task = run.task
    losses = np.concatenate([*_losses(run)])
    tokens = task.data.text("test").tokens
    ends = np.flatnonzero(tokens == task.tokenizer.end) + 1
    lengths = np.diff(ends, prepend=0)
    places = np.arange(len(tokens)) - np.repeat(ends - lengths, lengths)
    groups = np.ceil(np.log2(places + 1)).astype(int)
    counts = np.bincount(groups)
    means = np.bincount(groups, losses) / counts
    return [
        {
            "model": run_name(run),
            "length": 2**group,
            "tokens": count,
            "perplexity": np.exp(mean),
        }
        for group, (count, mean) in enumerate(zip(counts, means, strict=True))
    ]


def draw(runs: list[Run], path) -> str:
    """Draws a line for each run, as a PNG file.

    Args:
      runs: see `by_position`.
      path: where to write it, a `Path`.

    Returns:
      A table in Markdown, with the number of tokens and each run's perplexity.

    Raises:
      UserError: as `by_position` does, if runs have other texts, or the same name.
    """
    for run in runs:
        _check_language_model(run)
    check_comparable(runs, "test")
    each = [by_position(run) for run in runs]
    title = "Perplexity by place in the document"
    axis_title = "place in the document (tokens), at most"
    plot_against_length(sum(each, []), ["perplexity"], title, path, axis_title)
    header = ["place, at most", "tokens", *map(run_name, runs)]
    cells = [
        [
            f"{of_place[0]['length']:,}",
            f"{of_place[0]['tokens']:,}",
            *(f"{row['perplexity']:.1f}" for row in of_place),
        ]
        for of_place in zip(*each, strict=True)
    ]
    return markdown_table(header, cells, left=0)


def _check_language_model(run):
    if not isinstance(run.task, LanguageModellingTask):
        task = run.config.task
        expected = f"expected a language model, found {task}"
        raise UserError(f"--workdir={run.workdir}: {expected}")


def _losses(run):
    """Losses of the tokens of the test data, batch by batch, in their order."""
    task = run.task
    batches = task.evaluation_batches("test")
    state = task.initial_state(batches.buckets.batch_size, training=False)
    with progress_bar(total=batches.num_batches, desc="places", unit=" batches") as bar:
        for batch in batches.for_evaluation():
            losses, _, is_target, state = task.losses(run.model, batch, state, False)
            yield np.asarray(losses)[np.asarray(is_target)]
            bar.update()
