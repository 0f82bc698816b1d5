"""Retrieval by key: figures 2 and 5 of Schlag, Irie and Schmidhuber 2021."""

import functools

from reporting.plots import plot_retrieval
from reproduction import retrieval
from reproduction.results import Results
from reproduction.running import Job, Trainings
from reproduction.scales import Scale
from reproduction.sheet import Column, Picture, Sheet

# Losses that differ by no more count as one.
TOLERANCE = 0.02
# A published memory with such a loss is full. Below scale paper no more keys are tried.
FULL = 0.3
TITLES = {
    1: "Retrieval, setting 1: each key comes once",
    2: "Retrieval, setting 2: the values of keys change",
}
NOTES = [
    "The least loss of all evaluations: half the squared error, 0.5 if nothing is "
    "read. One training each, by `reproduction/retrieval.py`.",
    "The published losses are of Schlag, Irie and Schmidhuber 2021, section 6.1. Where "
    "there is none, training diverged, or nothing was published.",
]


def jobs(scale: Scale, folder) -> list[Job]:
    """See `reproduction.tables`; one trains a memory for each number of keys."""
    return [
        _trainings(scale, folder, setting, memory).job()
        for setting in scale.retrieval
        for memory in retrieval.MEMORIES[setting]
    ]


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`; a sheet for each setting."""
    return [
        _sheet(setting, list(counts), results.folder.results, scale)
        for setting, counts in scale.retrieval.items()
    ]


def _sheet(setting, counts, folder, scale):
    filled, trained, missing = [], [], 0
    for memory in retrieval.MEMORIES[setting]:
        trainings = _trainings(scale, folder, setting, memory)
        rows = trainings.rows()
        trained += rows.values()
        missing += len(trainings.keys) - len(rows)
        losses = {
            "here": {count: row["loss"] for (count,), row in rows.items()},
            "published": retrieval.published(setting, memory),
        }
        filled += [
            {"memory": memory, "of": of, **{f"{n}": points.get(n) for n in counts}}
            for of, points in losses.items()
        ]
    columns = [Column("memory", "memory"), Column("of", "loss")]
    columns += [Column(f"{count}", f"{count} keys", 4) for count in counts]
    name, notes = f"retrieval-{setting}", _notes(scale, trained, missing)
    pictures = [_picture(setting, trained, folder / f"{name}.png")] if trained else []
    return Sheet(name, TITLES[setting], columns, filled, notes, pictures)


def _notes(scale, trained, missing):
    notes = [*NOTES]
    if not scale.is_paper:
        notes.append(
            "These are some numbers of keys, up to the first at which the published "
            f"loss is above {FULL}. --scale=paper has all."
        )
    compared = [row for row in trained if row["published"] is not None]
    if compared:
        near = sum(
            row["loss"] is not None and row["loss"] <= row["published"] + TOLERANCE
            for row in compared
        )
        notes.append(
            f"{near} of {len(compared)} losses are at most {TOLERANCE} above the "
            "published."
        )
    never = [row for row in trained if row["loss"] is None]
    if never:
        named = ", ".join(f"{row['memory']} at {row['symbols']}" for row in never)
        notes.append(f"No evaluation of these had a finite loss: {named}.")
    if missing:
        notes.append(f"{missing} trainings have not been done.")
    return notes


def _picture(setting, trained, path):
    published = [
        {"memory": memory, "symbols": count, "loss": loss}
        for memory in retrieval.MEMORIES[setting]
        for count, loss in retrieval.published(setting, memory).items()
    ]
    # As the paper draws setting 2, where some losses are far above 0.5.
    plot_retrieval(trained, published, path, is_logarithmic=setting == 2)
    losses = ", ".join(
        f"{row['memory']} {_formatted(row['loss'])} at {row['symbols']}"
        for row in trained
    )
    caption = "Least loss by the number of keys; the published ones are dotted."
    return Picture(path.name, caption, f"Losses: {losses}.")


def _trainings(scale, folder, setting, memory):
    """Those of a memory; a key is a number of keys."""
    tried, published = [], retrieval.published(setting, memory)
    for count in scale.retrieval[setting]:
        tried.append((count,))
        if not scale.is_paper and (published.get(count) or 0) > FULL:
            break
    path = folder / "retrieval" / f"{setting}-{memory}"
    settings = retrieval.MEMORIES[setting][memory]._asdict()
    measure = functools.partial(retrieval.row, setting, memory)
    return Trainings(path, tried, settings, measure)


def _formatted(loss):
    return "diverged" if loss is None else f"{loss:.3f}"
