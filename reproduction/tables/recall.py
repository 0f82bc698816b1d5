"""Recall by the bytes that a model keeps: multi-query associative recall."""

import functools

from reporting.plots import plot_recall
from reproduction import recall
from reproduction.results import Results
from reproduction.running import Job, Trainings
from reproduction.scales import Scale
from reproduction.sheet import Column, Picture, Sheet

NAME, TITLE = "recall", "Recall by the bytes that a model keeps"
NOTES = [
    "The share of test queries that are answered by the value of their key (Arora et "
    "al. 2023), at the best evaluation of all learning rates.",
    f"Models have {recall.LAYERS} layers, or depths of one block, one head, and one "
    "unit of feed-forward. A token comes with the one before it. "
    "`reproduction/recall.py` trains them.",
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


def jobs(scale: Scale, folder) -> list[Job]:
    """See `reproduction.tables`; one trains a variant at each length and width."""
    return [_trainings(scale, folder, variant).job() for variant in _variants(scale)]


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    folder, training = results.folder.results, scale.recall["training"]
    trained, missing = [], 0
    for variant, (model, attention) in _variants(scale).items():
        trainings = _trainings(scale, folder, variant)
        rows = trainings.rows()
        missing += len(trainings.keys) - len(rows)
        for row in rows.values():
            said = {"model": model, "attention": attention}
            trained.append({**row, **said, "kib": row["state_bytes"] / 1024})
    rates = " and ".join(f"{rate:g}" for rate in training["learning_rates"])
    notes = [
        *NOTES,
        f"Learning rates are {rates}. After one that recalls 99 % there is no other. "
        f"Each has at most {training['steps']:,} updates of {recall.BATCH_SIZE} "
        f"sequences. The vocabulary has {training['vocabulary_size']:,} words.",
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


def _trainings(scale, folder, variant):
    """Those of a variant; a key is a length, a number of pairs and a width."""
    keys = [
        (*pairs, width)
        for pairs in scale.recall["pairs"].items()
        for width in scale.recall["widths"]
    ]
    training = scale.recall["training"]
    measure = functools.partial(recall.row, variant, **training)
    return Trainings(folder / NAME / variant, keys, training, measure)
