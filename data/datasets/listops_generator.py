"""Random ListOps expressions (Nangia and Bowman 2018), as Long Range Arena draws them.

Imports nothing heavy: worker processes start fast.
"""

import concurrent.futures
import multiprocessing
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from common.processes import num_usable

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
OPERATOR_PROBABILITY = 0.25
# Trees grown side by side, and accepted examples asked of a worker at a time: part
# of what a seed means, so changing either changes every dataset.
TREES_PER_DRAW = 1024
EXAMPLES_PER_CHUNK = 500
# So many draws without one tree within bounds: there are none, or next to none.
HOPELESS_DRAWS = 200


class Size(NamedTuple):
    """What expressions to draw.

    Attributes:
      min_length, max_length: bounds on operators + digits + closing brackets, both
        exclusive.
      max_depth: levels of nesting, the root's included.
      max_arguments: most arguments of an operator; the fewest is 2.
    """

    min_length: int = 500
    max_length: int = 2000
    max_depth: int = 10
    max_arguments: int = 10


def mean_nodes(max_depth: int, max_arguments: int) -> float:
    """Nodes of a drawn tree's deepest level, on average."""
    mean_arguments = (2 + max_arguments) / 2
    return mean_arguments * (OPERATOR_PROBABILITY * mean_arguments) ** (max_depth - 2)


def apply_operator(operator: str, arguments: list[int]) -> int:
    """The value of one operator: MED is the median's integer part, SM sums mod 10."""
    if operator == "[MIN":
        return min(arguments)
    if operator == "[MAX":
        return max(arguments)
    if operator == "[SM":
        return sum(arguments) % 10
    ordered = sorted(arguments)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) // 2


def generate(
    count: int, size: Size, seed: int, processes: int | None = None
) -> Iterator[tuple[str, int]]:
    """Yields `count` distinct (source, target) pairs, the same for the same seed.

    A node above `max_depth` is an operator with probability 0.25, else a digit;
    trees whose length is out of bounds are drawn again, so the distribution is that
    of Long Range Arena's rejection sampling. Only lengths are drawn until a tree is
    accepted.

    Args:
      count: number of examples.
      size: bounds on the expressions.
      seed: non-negative integer.
      processes: worker processes; None for one a core. Does not change the result.

    Raises:
      ValueError: if expressions of this size run out before `count` are found.
    """
    seen = set()
    misses = 0
    for chunk in _chunks(size, seed, processes or num_usable(), count):
        before = len(seen)
        for source, target in chunk:
            if source not in seen:
                seen.add(source)
                yield source, target
                if len(seen) == count:
                    return
        misses = misses + 1 if len(seen) == before else 0
        if misses == 20:
            raise ValueError(f"found only {len(seen)} distinct expressions of {size}")


def _chunks(size, seed, processes, count):
    if processes == 1 or count <= EXAMPLES_PER_CHUNK:
        index = 0
        while True:
            yield _chunk(size, seed, index)
            index += 1
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        waiting = [
            pool.submit(_chunk, size, seed, index) for index in range(2 * processes)
        ]
        index = len(waiting)
        try:
            while True:
                yield waiting.pop(0).result()
                waiting.append(pool.submit(_chunk, size, seed, index))
                index += 1
        finally:
            pool.shutdown(cancel_futures=True)


def _chunk(size, seed, index):
    """EXAMPLES_PER_CHUNK accepted examples, from a stream of their own."""
    random = np.random.Generator(np.random.PCG64([seed, index]))
    examples, draws = [], 0
    while len(examples) < EXAMPLES_PER_CHUNK:
        levels, accepted = _grow(random, size)
        draws += 1
        if not examples and not len(accepted) and draws == HOPELESS_DRAWS:
            raise ValueError(f"found no expressions of {size}")
        for tree in accepted[: EXAMPLES_PER_CHUNK - len(examples)]:
            examples.append(_write(levels, tree, random))
    return examples


def _grow(random, size):
    """Grows many trees level by level, without operators or digits.

    Returns:
      levels: for each level, (is_operator of each node, number of arguments of each
        operator, index of each operator's first argument in the next level, index of
        each node's operator among operators).
      accepted: indices of the root nodes whose trees have a length within bounds.
    """
    nodes = TREES_PER_DRAW
    tree = np.arange(nodes)
    lengths = np.zeros(nodes, np.int64)
    levels = []
    for depth in range(1, size.max_depth + 1):
        if depth < size.max_depth:
            is_operator = random.random(nodes) < OPERATOR_PROBABILITY
        else:
            is_operator = np.zeros(nodes, bool)
        if depth == 1:
            is_operator[:] = True
        arities = random.integers(2, size.max_arguments + 1, is_operator.sum())
        first = np.cumsum(arities) - arities
        levels.append((is_operator, arities, first, np.cumsum(is_operator) - 1))
        # An operator counts itself and its closing bracket, a digit itself.
        lengths += np.bincount(tree, 1 + is_operator, TREES_PER_DRAW).astype(np.int64)
        tree = np.repeat(tree[is_operator], arities)
        nodes = len(tree)
    inside = (lengths > size.min_length) & (lengths < size.max_length)
    return levels, np.flatnonzero(inside)


def _write(levels, root, random):
    """Fills one tree with operators and digits; returns its source and its value."""

    def node(level, index):
        is_operator, arities, first, rank = levels[level]
        if not is_operator[index]:
            digit = digits.pop()
            return str(digit), digit
        operator = OPERATORS[operators.pop()]
        arity, start = arities[rank[index]], first[rank[index]]
        sources, values = [], []
        for argument in range(start, start + arity):
            source, value = node(level + 1, argument)
            sources.append(source)
            values.append(value)
        source = "( " * (len(sources) + 1) + operator + " "
        source += " ) ".join(sources) + " ) ] )"
        return source, apply_operator(operator, values)

    # Drawn by the handful: one call to the generator costs more than a node.
    digits = _Pool(random, 10)
    operators = _Pool(random, len(OPERATORS))
    return node(0, root)


class _Pool:
    def __init__(self, random, high):
        self.random, self.high, self.drawn = random, high, []

    def pop(self):
        if not self.drawn:
            self.drawn = self.random.integers(0, self.high, 512).tolist()
        return self.drawn.pop()
