"""The matrix products of a training step, each alone, beside the whole step."""

import statistics
from collections.abc import Iterator

import tensorflow as tf

from benchmarks import models
from benchmarks.calls import Setting, prepare
from benchmarks.timing import interleave
from common.errors import UserError
from models.products import Product

STEP = "training step"


def measure(
    names: list[str],
    lengths: list[int],
    size: str = "small",
    tokens_per_batch: int = 4000,
    rounds: int = 5,
) -> Iterator[dict]:
    """Times every product of a training step alone, by turns with the step itself.

    Yields a row for each product, with the seconds of all its calls in a step, and
    one for all of them together. float32; arguments as for `speed.measure`.

    Raises:
      UserError: if a model is unknown or not installed.
    """
    models.check(names)
    for length in lengths:
        batch_size = max(1, tokens_per_batch // length)
        for name in names:
            prepared = prepare(name, Setting(size), batch_size, length)
            products = prepared.products
            if not products:
                raise UserError(f"--models: {name}: its encoder states no products")
            calls = {product: _alone(product) for product in products}
            title = f"{name}, {length} tokens"
            seconds = interleave({**calls, STEP: prepared.call}, rounds, title)
            same = {"model": name, "size": size, "length": length, "batch": batch_size}
            total = 0
            for product in products:
                taken = product.count * statistics.median(seconds[product])
                total += taken
                yield {
                    "benchmark": "floor",
                    **same,
                    "product": product.name,
                    "count": product.count,
                    "seconds": round(taken, 4),
                    "gflops_per_second": round(product.operations / taken / 1e9, 1),
                }
            step_seconds = statistics.median(seconds[STEP])
            gflop = sum(product.operations for product in products) / 1e9
            yield {
                "benchmark": "floor_total",
                **same,
                "gflop": round(gflop, 1),
                "products_seconds": round(total, 4),
                "seconds": round(step_seconds, 4),
                "products_share": round(total / step_seconds, 3),
            }


def _alone(product: Product):
    """A function that makes one call of the product, on random numbers."""
    a, b, c = product.sizes
    left = (b, a) if product.transposed == "left" else (a, b)
    right = (c, b) if product.transposed == "right" else (b, c)
    left, right = (tf.random.normal((product.batch, *shape)) for shape in (left, right))

    @tf.function
    def multiply():
        result = tf.matmul(
            left,
            right,
            transpose_a=product.transposed == "left",
            transpose_b=product.transposed == "right",
        )
        return result[0, 0, 0]

    return lambda: multiply().numpy()
