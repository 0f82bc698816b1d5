"""Table 4: long sequences, ListOps and IMDB in bytes, and the speed of training."""

import itertools

from configs.published import OTHER_SPEED, SPEED, SYSTEMS
from models import BASELINE
from reporting.plots import LABELS, by_length, plot_against_length
from reproduction import measure
from reproduction.results import Results, models_of
from reproduction.scales import Scale
from reproduction.scores import NOT_RUN, OTHER_MEASURE, verdict
from reproduction.sheet import Column, Picture, Sheet
from reproduction.tables import classification

TASKS = ["listops", "char_imdb"]
LENGTHS = (1000, 2000, 3000, 4000)
COLUMNS = [
    Column("model", "model"),
    Column("length", "bytes", 0),
    Column("speed", "speed / Transformer", 2),
    Column("published", "published", 1),
    Column("difference", "difference", 2, signed=True),
    Column("badge", "verdict"),
    Column("seconds", "seconds of a step", 3),
    Column("batch", "texts in a batch", 0),
    Column("system", "published as"),
]
NOTES = [
    "Speed is that of training steps, as `python benchmark.py speed` measures it: "
    "models by turns on one machine, the median of the rounds' ratios.",
    "TransEvolve's published ratios are from a TPU v3-8 and the authors' code, and "
    "the other systems' from another paper. TransEvolve's default form here is "
    "exactly equal and needs fewer operations, so no verdict says that a ratio is "
    "reproduced. Its fidelity is `paper`.",
]
# What the pictures show: a field of the rows, the title, and how it is told.
PICTURES = {
    measure.SPEED: (
        *("ratio_to_transformer", "Training speed"),
        *("Speed over the Transformer's", "{:.2f}"),
    ),
    measure.MEMORY: (
        *("peak_memory_mb", "Memory of training"),
        *("Peak memory in MB", "{:,.0f}"),
    ),
}


def rows(scale: Scale, results: Results | None = None) -> list[tuple[dict, list]]:
    """See `reproduction.tables`."""
    return classification.rows(scale, results, TASKS)


jobs = measure.jobs


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    title = "Table 4: long sequences"
    of_accuracy = classification.accuracies("table4", title, TASKS, scale, results)
    return [of_accuracy, _speed(scale, results.folder.results)]


def _speed(scale, folder):
    speeds, memory = (measure.rows(folder, name) for name in PICTURES)
    timed = {
        (row["model"], row["length"]): row
        for row in speeds
        if row["benchmark"] == "speed" and "seconds" in row
    }
    lengths = sorted({length for _, length in timed} or LENGTHS)
    published = {**SPEED, **OTHER_SPEED, BASELINE: dict.fromkeys(LENGTHS, 1.0)}
    models = [*models_of(scale, OTHER_SPEED), *(name for name, _ in timed)]
    filled = []
    for name, length in itertools.product(dict.fromkeys(models), lengths):
        row = timed.get((name, length), {})
        printed = published.get(name, {}).get(length)
        if not row and printed is None:
            continue
        ratio = row.get("ratio_to_transformer")
        filled.append(
            {
                "model": name,
                "system": SYSTEMS.get(name),
                "length": length,
                "batch": row.get("batch"),
                "seconds": row.get("seconds"),
                "speed": ratio,
                "published": printed,
                **verdict(ratio, printed, same_measure=False),
                # Without the Transformer beside it, it was timed as well.
                "badge": OTHER_MEASURE if row else NOT_RUN,
            }
        )
    notes = list(NOTES)
    if device := measure.device(folder, measure.SPEED):
        notes.append(f"They were measured on {device}, whatever trained.")
    for text, measured in (
        ("{model} was not timed at {length:,}: {not_run}.", speeds),
        ("The memory of {model} was not measured at {length:,}: {not_run}.", memory),
    ):
        notes += [text.format(**row) for row in measured if "not_run" in row]
    drawn = {measure.SPEED: list(timed.values()), measure.MEMORY: memory}
    pictures = [
        against_length(drawn[name], name, folder) for name in drawn if drawn[name]
    ]
    return Sheet(
        "speed", "Table 4: speed of training", COLUMNS, filled, notes, pictures
    )


def against_length(rows: list[dict], name: str, folder) -> Picture:
    """Draws speed or memory against length, a line for each model.

    Args:
      rows: of `benchmarks.speed` or `benchmarks.memory`; what has no `length` is left
        out.
      name: a key of `PICTURES`, and of the PNG.
      folder: where to write it.
    """
    field, title, what, form = PICTURES[name]
    rows = [row for row in rows if "length" in row]
    plot_against_length(rows, [field], title, folder / f"{name}.png")
    parts = []
    for model, points in by_length(rows, field).items():
        (first, start), *_, (last, end) = [*points, points[-1]]
        parts.append(
            f"{model} {form.format(start)} at {first:,} tokens, "
            f"{form.format(end)} at {last:,}"
        )
    told = "; ".join(parts) or "not measured"
    caption = f"{title}: {LABELS[field]}, by length."
    return Picture(f"{name}.png", caption, f"{what}: {told}.")
