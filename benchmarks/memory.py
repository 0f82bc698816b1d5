"""Peak memory of a training step or a forward pass, each in a process of its own."""

from collections.abc import Iterator

import tensorflow as tf

from benchmarks import models
from benchmarks.alone import ProcessEnded, peak_bytes, run_alone
from benchmarks.calls import Setting, check, prepare
from benchmarks.timing import line
from common.progress import progress_bar


def measure(
    names: list[str],
    lengths: list[int],
    tokens_per_batch: int = 4000,
    **setting,
) -> Iterator[dict]:
    """Yields a row for each model and length, then the fits.

    Arguments are some of those for speed.

    The fits are of batches with one sequence, where there are three lengths of these.

    A row's peak is that of the whole process, TensorFlow and weights included, after
    two calls; on a GPU, of that GPU's memory. `predicted_memory_mb` is what the process
    held before the calls and what `predicted_bytes` says that a call takes.
    Ratios of memory are to the Transformer's peak, to the literal form's and to that of
    the lower bound without attention, where they were measured before: smaller is
    better. A model that this machine may have no memory for, or whose process ends, has
    a row that says why.

    Raises:
      UserError: if a model is unknown, or cannot attend causally where it must.
    """
    setting = Setting(**setting)
    check(names, setting)
    rows = {}
    with progress_bar(
        total=len(lengths) * len(names), desc="memory", unit=" runs"
    ) as progress:
        for length in lengths:
            batch_size = max(1, tokens_per_batch // length)
            for name in names:
                row = setting.row("memory", name, length, batch_size)
                title = f"memory: {name} at {length} tokens"
                arguments = (name, setting._asdict(), batch_size, length)
                try:
                    row |= run_alone(title, peak, *arguments)
                except ProcessEnded as error:
                    row["not_run"] = str(error)
                progress.update()
                if "not_run" not in row:
                    rows[name, length] = row
                    for field, other in models.compared_with(name).items():
                        if before := rows.get((other, length)):
                            ratio = row["peak_memory_mb"] / before["peak_memory_mb"]
                            row[f"memory_{field}"] = round(ratio, 3)
                yield row
    for name in names:
        single = [
            row for row in rows.values() if row["model"] == name and row["batch"] == 1
        ]
        if len(single) > 2:
            yield _fit(single)


def _fit(rows):
    """The peak against the tokens of a sequence: a + b n."""
    constant, slope, error = line(
        [row["length"] for row in rows], [row["peak_memory_mb"] for row in rows]
    )
    return {
        "benchmark": "memory_fit",
        **{field: rows[0][field] for field in ("model", *Setting._fields)},
        "megabytes": round(constant),
        "kilobytes_per_token": round(1000 * slope, 1),
        "largest_error": error,
    }


def peak(name: str, setting: dict, batch_size: int, length: int) -> dict:
    """What a row says of memory, by what this process has held after two calls."""
    prepared = prepare(name, Setting(**setting), batch_size, length)
    predicted = _most_held() + prepared.bytes
    prepared.attempt()
    prepared.attempt()
    if prepared.not_run:
        return {"not_run": prepared.not_run}
    return {
        "peak_memory_mb": round(_most_held() / 2**20),
        "predicted_memory_mb": round(predicted / 2**20),
    }


def _most_held():
    if tf.config.list_logical_devices("GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    return peak_bytes()
