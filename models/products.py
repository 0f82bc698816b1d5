"""Matrix products, which layers state of themselves: the floor of a step."""

from collections.abc import Iterable
from typing import NamedTuple


class Product(NamedTuple):
    """Products of (a, b) and (b, c) matrices.

    Attributes:
      name: what they compute.
      count: how many calls a step makes.
      batch: independent products in a call.
      sizes: (a, b, c).
      transposed: "left" or "right" if that factor is stored the other way round.
      training_only: whether a forward pass does without them.
    """

    name: str
    count: int
    batch: int
    sizes: tuple[int, int, int]
    transposed: str = ""
    training_only: bool = False

    @property
    def operations(self) -> int:
        """Floating-point operations of all calls: 2abc for each product."""
        a, b, c = self.sizes
        return 2 * self.count * self.batch * a * b * c


def with_gradients(
    name: str, count: int, batch: int, sizes: tuple, transposed: str = ""
) -> list[Product]:
    """A product and the two that give its factors' gradients; see `Product`."""
    a, b, c = sizes
    if transposed == "right":  # so is its gradient
        left, right = ((a, c, b), ""), ((c, a, b), "left")
    else:
        left, right = ((a, c, b), "right"), ((b, a, c), "left")
    return [
        Product(name, count, batch, sizes, transposed),
        Product(f"{name}: left gradient", count, batch, *left, True),
        Product(f"{name}: right gradient", count, batch, *right, True),
    ]


def merged(products: Iterable[Product]) -> list[Product]:
    """Those that are alike as one, with their counts added up."""
    counts = {}
    for product in products:
        alike = product._replace(count=0)
        counts[alike] = counts.get(alike, 0) + product.count
    return [alike._replace(count=count) for alike, count in counts.items()]


def operations(products: Iterable[Product], training: bool) -> int:
    """Floating-point operations of a training step, or of a forward pass.

    Everything else (softmax, LayerNorm, dropout, ReLU, Adam) counts nothing.
    """
    return sum(
        product.operations
        for product in products
        if training or not product.training_only
    )
