"""Recall by the bytes that a model keeps: multi-query associative recall."""

import functools

from common.json_files import read_object
from reporting.plots import plot_recall
from reproduction import recall
from reproduction.results import Results
from reproduction.running import Job, rows_job
from reproduction.scales import Scale
from reproduction.sheet import Column, Picture, Sheet

NAME, TITLE = "recall", "Recall by the bytes that a model keeps"
RATES = ", ".join(f"{rate:g}" for rate in recall.LEARNING_RATES)
NOTES = [
    "The share of test queries that are answered by the value of their key (Arora et "
    "al. 2023). It is the best evaluation of all trainings, at learning rates of "
    f"{RATES} until one recalls 99 %.",
    f"Models have {recall.LAYERS} layers, or blocks of one depth, one head, and one "
    "unit of feed-forward. `reproduction/recall.py` trains them.",
    "KiB are what decoding keeps of one text.",
]
COLUMNS = [
    Column("model", "model"),
    Column("attention", "attention"),
    Column("length", "tokens", 0),
    Column("pairs", "pairs", 0),
    Column("width", "width", 0),
    Column("kib", "KiB", 1),
    Column("accuracy", "recalled", 3),
    Column("learning_rate", "learning rate", 5),
    Column("steps", "after updates", 0),
]


def jobs(scale: Scale, folder) -> dict[str, Job]:
    """See `reproduction.tables`; one trains a variant at each length and width."""
    settings = scale.recall
    return {
        f"{NAME}-{variant}": rows_job(
            f"training {variant} to recall",
            _paths(scale, folder, variant),
            functools.partial(
                _row, variant, settings["vocabulary_size"], settings["steps"]
            ),
            folder / NAME / f"{variant}.lock",
        )
        for variant in _variants(scale)
    }


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    folder, settings = results.folder.results, scale.recall
    trained, missing = [], 0
    for variant, (model, attention) in _variants(scale).items():
        for path in _paths(scale, folder, variant).values():
            if row := read_object(path):
                said = {"model": model, "attention": attention}
                trained.append({**row, **said, "kib": row["state_bytes"] / 1024})
            else:
                missing += 1
    notes = [
        *NOTES,
        f"Each training has at most {settings['steps']:,} updates of "
        f"{recall.BATCH_SIZE} sequences. The vocabulary has "
        f"{settings['vocabulary_size']:,} words.",
    ]
    if missing:
        notes.append(f"{missing} trainings have not been done.")
    pictures = []
    if trained:
        plot_recall(trained, folder / f"{NAME}.png")
        best = {}
        for row in trained:
            which = f"{row['model']} {row['attention']}"
            best[which] = max(row["accuracy"], best.get(which, 0))
        said = ", ".join(f"{which} {share:.2f}" for which, share in best.items())
        caption = "The share of values that are recalled, by what is kept of a text."
        pictures = [Picture(f"{NAME}.png", caption, f"The most of each: {said}.")]
    return [Sheet(NAME, TITLE, COLUMNS, trained, notes, pictures)]


def _variants(scale):
    """{name: its model and attention}."""
    return {
        model + suffix: (model, suffix.lstrip("-") or "softmax")
        for model in recall.MODELS
        for suffix in scale.recall["attentions"]
    }


def _paths(scale, folder, variant):
    """{(length, pairs, width): where the row lies}."""
    return {
        (length, pairs, width): folder
        / NAME
        / f"{variant}-{length}-{pairs}-{width}.json"
        for length, pairs in scale.recall["pairs"].items()
        for width in scale.recall["widths"]
    }


def _row(variant, vocabulary_size, steps, key):
    return recall.row(variant, *key, vocabulary_size, steps)
