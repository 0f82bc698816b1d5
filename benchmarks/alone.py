"""Calls in processes of their own."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

from common.errors import UserError
from common.processes import end_with_parent


class ProcessEnded(UserError):
    """A process was ended from outside.

    Args:
      title: what it did.
    """

    def __init__(self, title: str):
        super().__init__(
            f"{title}: its process was ended, as happens when memory runs out"
        )


class Peer(NamedTuple):
    """A process that makes one call each time it is asked."""

    call: Callable[[], None]
    parameters: int
    close: Callable[[], None]


def run_alone(title: str, function: Callable, *arguments):
    """What a function returns, called in a process of its own.

    Raises:
      ProcessEnded: that starts with the title.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        1, mp_context=context, initializer=end_with_parent
    ) as process:
        try:
            return process.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise ProcessEnded(title) from None
