"""What a row of a dataset is: one kind of tuple for each kind of dataset.

Texts are UTF-8. Each kind has `texts`, those of one row in their order.
"""

from typing import NamedTuple

KINDS = ("classification", "parallel_text", "plain_text")


class Example(NamedTuple):
    """Classification: a text and its class, from 0."""

    text: bytes
    label: int

    @property
    def texts(self) -> tuple[bytes]:
        return (self.text,)


class Pair(NamedTuple):
    """Parallel text: a sentence and its translation."""

    source: bytes
    target: bytes

    @property
    def texts(self) -> tuple[bytes, bytes]:
        return self.source, self.target


class Line(NamedTuple):
    """Plain text: a line of it. Nothing deals batches of these yet."""

    text: bytes

    @property
    def texts(self) -> tuple[bytes]:
        return (self.text,)
