"""Peak memory of a training step or a forward pass, each in a process of its own."""

import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from benchmarks import models
from benchmarks.alone import ProcessEnded, run_alone
from benchmarks.calls import Setting, check, prepare
from common.progress import progress_bar
from training.tensorflow.memory_prediction import shortage
from training.tensorflow.strategy import make_strategy


def measure(
    names: list[str],
    lengths: list[int],
    tokens_per_batch: int = 4000,
    **setting,
) -> Iterator[dict]:
    """Yields a row for each model and length, then the fits; arguments as for speed.

    The fits are of batches with one sequence, where there are three lengths of these.

    A row's peak is that of the whole process, TensorFlow and weights included, after
    two calls; on a GPU, of that GPU's memory. `predicted_memory_mb` is what the process
    held before the calls and what `predicted_bytes` says that a call takes.
    Ratios of memory are to the Transformer's peak, to the literal form's and to that of
    the floor without attention, where they were measured before: smaller is better.
    A model that this machine may have no memory for, or whose process ends, has a row
    that says why.

    Raises:
      UserError: if a model is unknown, not installed, or cannot attend causally where
        it must.
    """
    setting = Setting(**setting)
    hub = setting.task == "classification" and not setting.causal
    check(names, setting, [models.KERAS_HUB] * hub)
    peaks, rows = {}, []
    with progress_bar(
        total=len(lengths) * len(names), desc="memory", unit=" runs"
    ) as progress:
        for length in lengths:
            batch_size = max(1, tokens_per_batch // length)
            for name in names:
                row = {
                    "benchmark": "memory",
                    "model": name,
                    **setting.row(),
                    "length": length,
                    "batch": batch_size,
                }
                title = f"memory: {name} at {length} tokens"
                try:
                    found = run_alone(title, _peak, name, setting, batch_size, length)
                except ProcessEnded as error:
                    found = {"not_run": str(error)}
                progress.update()
                if "peak_memory_mb" in found:
                    peaks[name, length] = peak = found["peak_memory_mb"]
                    for field, other in models.compared_with(name).items():
                        if before := peaks.get((other, length)):
                            found[f"memory_{field}"] = round(peak / before, 3)
                    rows.append({**row, **found})
                yield {**row, **found}
    for name in names:
        alone = [row for row in rows if row["model"] == name and row["batch"] == 1]
        if len({row["length"] for row in alone}) > 2:
            yield _fit(alone)


def _fit(rows):
    """Least squares of the peak against the tokens of a sequence: a + b n."""
    tokens = np.array([row["length"] for row in rows])
    peaks = np.array([row["peak_memory_mb"] for row in rows])
    slope, constant = np.polyfit(tokens, peaks, 1)
    errors = (constant + slope * tokens) / peaks - 1
    return {
        "benchmark": "memory_fit",
        **{field: rows[0][field] for field in ("model", *Setting().row())},
        "megabytes": round(float(constant)),
        "kilobytes_per_token": round(float(1000 * slope), 1),
        "largest_error": round(float(np.abs(errors).max()), 3),
    }


def _peak(name, setting, batch_size, length):
    """Figures of a row, after two calls."""

    def most():
        if tf.config.list_logical_devices("GPU"):
            return tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return peak_bytes()

    prepared = prepare(name, setting, batch_size, length)
    one_device = make_strategy("one_device")
    if short := shortage(prepared.bytes, one_device, certain=True):
        return {"not_run": short}
    predicted = most() + prepared.bytes
    try:
        prepared.call()
        prepared.call()
    except tf.errors.ResourceExhaustedError:
        return {"not_run": "memory ran out"}
    return {
        "peak_memory_mb": round(most() / 2**20),
        "predicted_memory_mb": round(predicted / 2**20),
    }


def peak_bytes() -> int:
    """The most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage(): on Linux it counts what the parent held at the fork.
        lines = status.read_text().splitlines()
        line = next(line for line in lines if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes
