"""The matrix products of a training step, each alone, beside the whole step."""

import functools
import itertools
import statistics
from collections.abc import Iterator

import tensorflow as tf

from benchmarks.calls import Setting, check, prepare
from benchmarks.timing import interleave
from benchmarks.traced_products import Product

STEP = "training step"


def measure(
    names: list[str],
    lengths: list[int],
    size: str = "small",
    tokens_per_batch: int = 4000,
    rounds: int = 5,
) -> Iterator[dict]:
    """Times every product of a training step alone, by turns with the step itself.

    The sum of the products is a lower bound of the step's time. Yields a row for each
    product, with the seconds of all its calls in a step, and one for all of them
    together. float32; arguments as for `speed.measure`.

    Raises:
      UserError: if a model is unknown.
    """
    setting = Setting(size=size)
    check(names, setting)
    for length, name in itertools.product(lengths, names):
        batch_size = max(1, tokens_per_batch // length)
        row = setting.row("products", name, length, batch_size)
        prepared = prepare(name, setting, batch_size, length)
        prepared.attempt()
        if prepared.not_run:
            yield {**row, "not_run": prepared.not_run}
            continue
        calls = {product: _alone(product) for product in prepared.products}
        title = f"{name}, {length} tokens"
        seconds = interleave({**calls, STEP: prepared.call}, rounds, title)
        total = 0
        for product in calls:
            taken = product.count * statistics.median(seconds[product])
            total += taken
            yield {
                **row,
                "product": product.name,
                "count": product.count,
                "seconds": round(taken, 4),
                "gflops_per_second": round(product.operations / taken / 1e9, 1),
            }
        step_seconds = statistics.median(seconds[STEP])
        gflop = sum(product.operations for product in calls) / 1e9
        yield {
            **row,
            "benchmark": "products_total",
            "gflop": round(gflop, 1),
            "products_seconds": round(total, 4),
            "seconds": round(step_seconds, 4),
            "products_share": round(total / step_seconds, 3),
        }


def _alone(product: Product):
    """A function that makes one call of the product, on random numbers."""
    factors = [tf.random.normal(shape) for shape in product.shapes]
    if product.equation:
        multiply = functools.partial(tf.einsum, product.equation)
    else:
        flags = zip(("transpose_a", "transpose_b"), product.transposed, strict=True)
        multiply = functools.partial(tf.matmul, **dict(flags))
    call = tf.function(lambda: tf.reshape(multiply(*factors), [-1])[0])
    return lambda: call().numpy()
