"""The matrix products of a traced graph, which most of a step's operations are."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# By type of operation, the attributes that say which factor is transposed.
TRANSPOSITIONS = {
    "MatMul": ("transpose_a", "transpose_b"),
    "BatchMatMulV2": ("adj_x", "adj_y"),
}
CONDITIONALS = ("If", "StatelessIf")


class Product(NamedTuple):
    """A product of two matrices, of two stacks of matrices, or by an equation.

    Attributes:
      shapes: of both factors, as they lie in memory.
      transposed: for each factor, whether its last two axes change places.
      equation: as `einsum` takes it; empty for matrices.
      count: how often a graph has it.
    """

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    transposed: tuple[bool, bool] = (False, False)
    equation: str = ""
    count: int = 1

    @property
    def name(self) -> str:
        """The factors, such as 8×4000×32 · 8×4000×32ᵀ, after an equation."""
        left, right = (
            "×".join(map(str, shape)) + ("ᵀ" if turned else "")
            for shape, turned in zip(self.shapes, self.transposed, strict=True)
        )
        return f"{self.equation} {left} · {right}".lstrip()

    @property
    def operations(self) -> int:
        """Floating-point operations of all of them: 2abc for (a, b) times (b, c)."""
        if self.equation:
            factors = self.equation.split("->")[0].split(",")
            sizes = {}
            for letters, shape in zip(factors, self.shapes, strict=True):
                sizes.update(zip(letters, shape, strict=True))
            return 2 * self.count * math.prod(sizes.values())
        left, right = (
            shape[-2:][::-1] if turned else shape[-2:]
            for shape, turned in zip(self.shapes, self.transposed, strict=True)
        )
        stacked = np.broadcast_shapes(*(shape[:-2] for shape in self.shapes))
        return 2 * self.count * math.prod((*stacked, *left, right[1]))


def products(graph) -> list[Product]:
    """The products that a graph's outputs depend on, those of most operations first.

    Everything else (softmax, LayerNorm, dropout, ReLU, FFTs) is none. Nor are products
    within loops and calls.

    Args:
      graph: of a `tf.function` whose inputs have static shapes.
    """
    counts = Counter(filter(None, map(_product, taken_operations(graph))))
    each = [product._replace(count=count) for product, count in counts.items()]
    return sorted(each, key=lambda product: -product.operations)


def _product(operation):
    if operation.type in TRANSPOSITIONS:
        attributes = TRANSPOSITIONS[operation.type]
        options = {"transposed": tuple(map(operation.get_attr, attributes))}
    elif operation.type == "Einsum" and len(operation.inputs) == 2:
        options = {"equation": operation.get_attr("equation").decode()}
    else:
        return None
    return Product(tuple(tuple(x.shape) for x in operation.inputs), **options)


def taken_operations(graph) -> Iterator:
    """Operations that the outputs depend on: TensorFlow leaves out the others.

    Of a conditional, those of the branch that runs where the fast form is safe.
    """
    waiting, seen = [tensor.op for tensor in graph.outputs], set()
    while waiting:
        operation = waiting.pop()
        if operation in seen:
            continue
        seen.add(operation)
        waiting += [tensor.op for tensor in operation.inputs]
        yield operation
        if operation.type in CONDITIONALS:
            branch = graph._get_function(operation.get_attr("then_branch").name)
            yield from taken_operations(branch.graph)
