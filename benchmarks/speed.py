"""Seconds of a training step or a forward pass, models side by side."""

import statistics
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from benchmarks import checkout, models
from benchmarks.alone import ProcessEnded
from benchmarks.calls import Setting, check, prepare
from benchmarks.timing import interleave, speedup
from configs.published import SPEED
from models.products import operations
from training.tensorflow.memory_prediction import shortage
from training.tensorflow.strategy import make_strategy

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
    round to the Transformer, to the literal form, to the floor without attention and to
    this checkout's, if those were timed too, and the rate of matrix-product operations,
    beside the rate of one large product timed in the same rounds. `published` is the
    paper's ratio, on its own machine. A model that this machine has no memory for, or
    whose process ends, is not timed, and its row says why.

    Args:
      names: of variants, of outside peers, or CHECKOUT:VARIANT for a variant by the
        code of another checkout.
      lengths: tokens in a sequence.
      tokens_per_batch: a batch holds as many sequences as fit, at least one.
      rounds: that count.
      **setting: of `calls.Setting`.

    Raises:
      UserError: if a model is unknown, not installed, or cannot attend causally where
        it must.
    """
    setting = Setting(**setting)
    check(names, setting, [*_peers(setting), *checkout.models(names)])
    rows = []
    for length in lengths:
        batch_size = max(1, tokens_per_batch // length)
        prepared, short = {}, {}
        for name in names:
            try:
                found = prepare(name, setting, batch_size, length)
            except ProcessEnded as error:
                short[name] = str(error)
                continue
            # Certainly: a death would take the rows of all models with it.
            one_device = make_strategy("one_device")
            short[name] = shortage(found.bytes, one_device, certain=True)
            if not short[name]:
                short[name] = _exhausted(found.call)
            if not short[name]:
                prepared[name] = found
        calls = {
            name: _until_it_ends(name, found.call, short)
            for name, found in prepared.items()
        }
        calls[PEAK] = _large_product(setting.precision)
        title = f"{setting.mode}, {length} tokens"
        seconds = interleave(calls, rounds, title)
        for found in prepared.values():
            found.close()
        peak = 2 * PEAK_SIZE**3 / statistics.median(seconds[PEAK]) / 1e9
        for name in names:
            row = {
                "benchmark": "speed",
                "model": name,
                **setting.row(),
                "length": length,
                "batch": batch_size,
            }
            if short[name]:
                yield {**row, "not_run": short[name]}
                continue
            row["parameters"] = prepared[name].parameters
            counted = operations(prepared[name].products, setting.mode == "train")
            row |= _figures(seconds, name, counted, peak)
            if setting == Setting() and length in SPEED.get(name, {}):
                row["published"] = SPEED[name][length]
            rows.append(row)
            yield row
    for name in names:
        timed = [row for row in rows if row["model"] == name]
        if len(timed) > 2:
            yield _fit(timed)


def _exhausted(call):
    """Why there is no memory for a call; None if there is."""
    try:
        call()
    except tf.errors.ResourceExhaustedError:
        return "memory ran out"
    except ProcessEnded as error:
        return str(error)


def _until_it_ends(name, call, short):
    """A call that is made no more once its process has ended, as `short` then says."""

    def guarded():
        if not short[name]:
            try:
                call()
            except ProcessEnded as error:
                short[name] = str(error)

    return guarded


def _peers(setting):
    """The outside peers that do what the setting asks for."""
    if setting.causal:
        return []
    able = [models.KERAS_HUB] if setting.task == "classification" else []
    if setting.precision == "float32" and not setting.jit_compile:
        able.append(models.PYTORCH)
    return able


def _figures(seconds, name, counted, peak):
    times = seconds[name]
    median = statistics.median(times)
    figures = {
        "seconds": round(median, 5),
        "spread": round(max(times) - min(times), 5),
    }
    for field, baseline in models.compared_with(name).items():
        if baseline in seconds:
            figures[field] = _rounded(speedup(seconds, name, baseline))
    if not counted:  # a model that does not state its products
        return figures
    rate = counted / median / 1e9
    return {
        **figures,
        "gflop": round(counted / 1e9, 2),
        "gflops_per_second": round(rate, 1),
        "peak_gflops_per_second": round(peak, 1),
        "peak_share": _rounded(rate / peak),
    }


def _rounded(ratio):
    return round(ratio, 3)


def _fit(rows):
    """Least squares of seconds per token against length: a + b n."""
    lengths = np.array([row["length"] for row in rows])
    times = [row["seconds"] / row["batch"] / row["length"] for row in rows]
    slope, constant = np.polyfit(lengths, times, 1)
    errors = (constant + slope * lengths) / times - 1
    same = ("model", *Setting().row())
    return {
        "benchmark": "speed_fit",
        **{field: rows[0][field] for field in same},
        "microseconds_per_token": round(float(1e6 * constant), 2),
        "nanoseconds_per_token_and_length": round(float(1e9 * slope), 3),
        "largest_error": _rounded(float(np.abs(errors).max())),
    }


def _large_product(precision):
    matrix = tf.cast(tf.random.normal((PEAK_SIZE, PEAK_SIZE)), precision)
    product = tf.function(lambda x: tf.matmul(x, x))
    return lambda: product(matrix)[0, 0].numpy()
