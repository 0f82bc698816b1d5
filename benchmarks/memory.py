"""Peak memory of a training step or a forward pass, each in a process of its own."""

import multiprocessing
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from benchmarks import models
from common.errors import UserError
from common.progress import progress_bar


def measure(
    names: list[str],
    lengths: list[int],
    size: str = "small",
    precision: str = "float32",
    mode: str = "train",
    tokens_per_batch: int = 4000,
) -> Iterator[dict]:
    """Yields a row for each model and length; arguments as for speed.

    A row's peak is that of the whole process, TensorFlow and weights included, after
    two calls; on a GPU, of that GPU's memory. `predicted_memory_mb` is what the process
    held before the calls and what `training.memory` says that an update takes.
    `memory_ratio` is to the Transformer's peak, where that was measured before: smaller
    is better.

    Raises:
      UserError: if a model is unknown or not installed, or its process was ended.
    """
    models.check(names)
    with progress_bar(
        total=len(lengths) * len(names), desc="memory", unit=" runs"
    ) as progress:
        for length in lengths:
            baseline = None
            for name in names:
                batch_size = max(1, tokens_per_batch // length)
                arguments = (name, size, precision, mode, batch_size, length)
                title = f"memory: {name} at {length} tokens"
                predicted, peak = run_alone(title, _peak, *arguments)
                row = {
                    "benchmark": "memory",
                    "mode": mode,
                    "model": name,
                    "task": "char_imdb",
                    "size": size,
                    "length": length,
                    "batch": batch_size,
                    "precision": precision,
                    "peak_memory_mb": round(peak / 2**20),
                }
                if predicted:
                    row["predicted_memory_mb"] = round(predicted / 2**20)
                progress.update()
                if name == models.BASELINE:
                    baseline = peak
                if baseline:
                    row["memory_ratio"] = round(peak / baseline, 3)
                yield row


def run_alone(title: str, function: Callable, *arguments):
    """What a function returns, called in a process of its own.

    Raises:
      UserError: that starts with the title, if the process was ended.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        try:
            return process.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise UserError(
                f"{title}: its process was ended, as happens when memory runs out"
            ) from None


def _peak(name, size, precision, mode, batch_size, length):
    """The prediction, None of a forward pass, and the most memory, after two calls."""
    import tensorflow as tf

    from benchmarks.speed import make_trainer, prepare

    def most():
        if tf.config.list_logical_devices("GPU"):
            return tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return peak_bytes()

    predicted = None
    if mode == "train":
        trainer, iterator = make_trainer(name, size, precision, batch_size, length)
        update = trainer.update_bytes(iterator.element_spec, (batch_size, length))
        predicted = most() + update

        def call():
            trainer.train(iterator, 1)
    else:
        call, _ = prepare(name, size, precision, mode, batch_size, length)
    call()
    call()
    return predicted, most()


def peak_bytes() -> int:
    """The most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage(): on Linux it counts what the parent held at the fork.
        lines = status.read_text().splitlines()
        line = next(line for line in lines if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes
