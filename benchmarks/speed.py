"""Seconds of a training step or a forward pass, models side by side."""

import statistics
from collections.abc import Iterator

import keras
from keras import ops

from benchmarks import models
from benchmarks.calls import Setting, check, prepare
from benchmarks.timing import interleave, line, speedup, summary
from configs.published import SPEED

PEAK = "matrix product"
PEAK_SIZE = 4096


def measure(
    names: list[str],
    lengths: list[int],
    tokens_per_batch: int = 4000,
    rounds: int = 5,
    **setting,
) -> Iterator[dict]:
    """Times models by turns; yields a row for each model and length, then the fits.

    Sequences are random bytes without padding. A row has the median of the rounds,
    their spread (largest minus smallest), the median ratio of speeds in the same
    round to the Transformer, to the literal form, to the lower bound without attention
    and to this checkout's, if those were timed too, and the rate of matrix-product
    operations, beside the rate of one large product timed in the same rounds.
    `published` is the paper's ratio, on its own machine. A model that this machine has
    no memory for, or whose process ends, is not timed, and its row says why.

    Args:
      names: of variants, `models.PYTORCH`, or CHECKOUT:VARIANT for a variant by the
        code of another checkout or of a clone of the authors'.
      lengths: tokens in a sequence.
      tokens_per_batch: a batch holds as many sequences as fit, at least one.
      rounds: timed ones; one before them does not count.
      **setting: of `calls.Setting`.

    Raises:
      UserError: if a model is unknown, not installed, or cannot attend causally where
        it must.
    """
    setting = Setting(**setting)
    checkouts = [name for name in names if models.split(name)[0]]
    check(names, setting, [models.PYTORCH, *checkouts])
    rows = []
    for length in lengths:
        batch_size = max(1, tokens_per_batch // length)
        prepared = {}
        for name in names:
            prepared[name] = prepare(name, setting, batch_size, length)
            prepared[name].attempt()
        calls = {name: model.attempt for name, model in prepared.items()}
        calls[PEAK] = _large_product(setting.precision)
        seconds = interleave(calls, rounds, f"{setting.mode}, {length} tokens")
        for name, model in prepared.items():
            if model.not_run:  # its calls did nothing
                del seconds[name]
            else:
                seconds[name] = [time / model.steps for time in seconds[name]]
        peak = 2 * PEAK_SIZE**3 / statistics.median(seconds[PEAK]) / 1e9
        for name, model in prepared.items():
            model.close()
            row = setting.row("speed", name, length, batch_size)
            if model.not_run:
                yield {**row, "not_run": model.not_run}
                continue
            row["parameters"] = model.parameters
            counted = sum(product.operations for product in model.products)
            row |= _figures(seconds, name, counted, peak)
            if setting == Setting() and length in SPEED.get(name, {}):
                row["published"] = SPEED[name][length]
            rows.append(row)
            yield row
    for name in names:
        timed = [row for row in rows if row["model"] == name]
        if len(timed) > 2:
            yield _fit(timed)


def _figures(seconds, name, counted, peak):
    figures = summary(seconds[name], 5)
    for field, baseline in models.compared_with(name).items():
        if baseline in seconds:
            figures[field] = round(speedup(seconds, name, baseline), 3)
    if counted:  # not by JAX, nor in a process of its own
        rate = counted / statistics.median(seconds[name]) / 1e9
        figures["gflop"] = round(counted / 1e9, 2)
        figures["gflops_per_second"] = round(rate, 1)
        figures["peak_gflops_per_second"] = round(peak, 1)
        figures["peak_share"] = round(rate / peak, 3)
    return figures


def _fit(rows):
    """Seconds per token against length: a + b n."""
    lengths = [row["length"] for row in rows]
    times = [row["seconds"] / row["batch"] / row["length"] for row in rows]
    constant, slope, error = line(lengths, times)
    return {
        "benchmark": "speed_fit",
        **{field: rows[0][field] for field in ("model", *Setting._fields)},
        "microseconds_per_token": round(1e6 * constant, 2),
        "nanoseconds_per_token_and_length": round(1e9 * slope, 3),
        "largest_error": error,
    }


def _large_product(precision):
    matrix = ops.cast(keras.random.normal((PEAK_SIZE, PEAK_SIZE)), precision)
    return lambda: ops.convert_to_numpy(ops.matmul(matrix, matrix)[0, 0])
