"""Evaluating a translation: hypotheses, BLEU and chrF, beside the paper's figure."""

import logging
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from data import parallel_text
from data.progress import progress_bar
from decoding.bleu import AS_PUBLISHED, METRICS, score
from decoding.translator import Translator
from reporting.published import published_bleu
from reporting.tables import markdown_table

SAMPLES = 3

logger = logging.getLogger("transevolve")


def evaluate_translation(
    task, model, split: str, each_checkpoint: Iterable[Callable], path: Path
) -> tuple[dict, str]:
    """Translates a split, writes the hypotheses, and scores them.

    Args:
      task: `TranslationTask`.
      model: with the weights to evaluate.
      split: "validation" or "test".
      each_checkpoint: functions that each give the model other weights; if there are
        any, the mean of their scores is reported too.
      path: of the hypotheses, one a line.

    Returns:
      The scores, and Markdown: their table, and some sentences.
    """
    sources, references = task.data.texts(split)
    config = task.config
    translator = Translator(
        model, task.tokenizer, config.decode, config.data.bucket_lengths
    )
    start = time.monotonic()
    hypotheses = _translate(translator, sources, f"translating {split}")
    seconds = time.monotonic() - start
    path.write_text("".join(line + "\n" for line in hypotheses), encoding="utf-8")
    scores, signatures = score(hypotheses, references)
    logger.info("%s", scores)
    languages = (config.data.source_language, config.data.target_language)
    test_set = parallel_text.test_set(config.data, split)
    result = {
        "languages": "-".join(languages),
        "test_set": test_set,
        "examples": len(sources),
        **scores,
        "signatures": signatures,
        "decode": config.decode.to_dict(),
    }
    columns = {"these weights": scores}
    singles = []
    for number, restore in enumerate(each_checkpoint, start=1):
        restore()
        translator.refresh()
        found = _translate(translator, sources, f"checkpoint {number}")
        singles.append(score(found, references)[0])
        logger.info("checkpoint %d: %s", number, singles[-1])
    if singles:
        mean = {
            name: round(statistics.mean(one[name] for one in singles), 2)
            for name in METRICS
        }
        columns[f"mean of {len(singles)} checkpoints"] = mean
        result["mean_of_checkpoints"] = mean
    result["sentences_per_second"] = round(len(sources) / seconds, 2)
    published = published_bleu(languages, test_set, config.variant)
    if published is not None:
        result["published"] = published
        columns["published"] = {AS_PUBLISHED: published}
    table = _table(columns, signatures)
    return result, f"{table}\n\n{_samples(sources, references, hypotheses)}"


def _translate(translator, sources, title):
    with progress_bar(desc=title, total=len(sources), unit=" sentences") as bar:
        found = translator.translate(sources, bar.update)
    return [best[0].text for best in found]


def _table(columns, signatures):
    rows = [
        [name, signatures[name], *(column.get(name, "") for column in columns.values())]
        for name in METRICS
    ]
    return markdown_table(["score", "signature", *columns], rows, left=2)


def _samples(sources, references, hypotheses):
    step = max(1, len(sources) // SAMPLES)
    return "\n\n".join(
        f"source:     {sources[i]}\nreference:  {references[i]}\n"
        f"hypothesis: {hypotheses[i]}"
        for i in range(0, len(sources), step)[:SAMPLES]
    )
