"""Table 4: long sequences, ListOps and IMDB in bytes, and the speed of training."""

from configs.published import OTHER_SPEED, SPEED, SYSTEMS
from reproduction.pictures import against_length
from reproduction.scores import NOT_RUN, OTHER_MEASURE, difference
from reproduction.sheet import Column, Sheet
from reproduction.tables import accuracy
from reproduction.tables.accuracy import BASELINE
from reproduction.tables.table import Table, rows_of, system, systems_of

TASKS = ["listops", "char_imdb"]
LENGTHS = (1000, 2000, 3000, 4000)


def experiments(scale, seeds):
    """See `Table`."""
    return accuracy.experiments(TASKS, scale, seeds)


def sheets(scale, seeds, results):
    """See `Table`."""
    title = "Table 4: long sequences"
    return [
        accuracy.sheet("table4", title, TASKS, scale, seeds, results),
        _speed(results),
    ]


def _speed(results):
    measured = {(row["model"], row["length"]): row for row in _timed(results.speeds)}
    lengths = sorted({length for _, length in measured} | set(LENGTHS))
    published = {**SPEED, **OTHER_SPEED, BASELINE: dict.fromkeys(LENGTHS, 1.0)}
    scale = results.scale
    models = [model for model, _ in measured]
    run = dict.fromkeys([*rows_of(scale), *systems_of(scale, OTHER_SPEED), *models])
    others = [name for name in OTHER_SPEED if SYSTEMS.get(name) not in run]
    rows = []
    for name in [*run, *others]:
        for length in lengths:
            row = measured.get((name, length), {})
            found = row.get("ratio_to_transformer")
            printed = published.get(system(name) or name, {}).get(length)
            if not row and printed is None:
                continue
            rows.append(
                {
                    "model": name,
                    "system": system(name),
                    "length": length,
                    "batch": row.get("batch"),
                    "seconds": row.get("seconds"),
                    "speed": found,
                    "published": printed,
                    "difference": difference(found, printed),
                    "badge": OTHER_MEASURE if "seconds" in row else NOT_RUN,
                }
            )
    columns = [
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
    notes = [
        "Speed is that of training steps, as `python benchmark.py speed` measures it: "
        "models by turns on one machine, the median of the rounds' ratios.",
        "TransEvolve's published ratios are from a TPU v3-8 and the authors' code, and "
        "the other systems' from another paper. TransEvolve's default form here is "
        "exactly equal and needs fewer operations, so no verdict says that a ratio is "
        "reproduced. Its profile is the paper's.",
    ]
    if results.device:
        notes.append(f"They were measured on {results.device}, whatever trained.")
    for row in _not_run(results.speeds):
        notes.append(
            f"{row['model']} was not timed at {row['length']:,}: {row['not_run']}."
        )
    for row in _not_run(results.memory):
        notes.append(
            f"The memory of {row['model']} was not measured at {row['length']:,}: "
            f"{row['not_run']}."
        )
    pictures = []
    if measured:
        pictures.append(
            against_length(
                list(measured.values()),
                "ratio_to_transformer",
                "Training speed",
                results.folder,
                "speed.png",
            )
        )
    if results.memory:
        pictures.append(
            against_length(
                results.memory,
                "peak_memory_mb",
                "Memory of training",
                results.folder,
                "memory.png",
            )
        )
    return Sheet("speed", "Table 4: speed of training", columns, rows, notes, pictures)


def _timed(rows):
    return [row for row in rows if row["benchmark"] == "speed" and "seconds" in row]


def _not_run(rows):
    return [row for row in rows if "not_run" in row]


TABLE = Table("4", experiments, sheets, is_timed=True)
