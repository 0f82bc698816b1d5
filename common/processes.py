"""Processes and threads: how they end, how long they may take, how many can run."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def num_usable() -> int:
    """Processors that this process may use, where the system says so, or all."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def within(seconds: float, function: Callable[[], Result]) -> Result:
    """What a function returns or raises, if that takes no longer.

    A look-up of a host's name knows no time limit and cannot be interrupted. It is left
    behind in a thread.

    Raises:
      TimeoutError: if it takes longer.
    """
    answer = Future()

    def call():
        try:
            answer.set_result(function())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return answer.result(seconds)


def ending(code: int) -> str:
    """How a process ended, in words, by the code that its parent is given."""
    if code >= 0:
        return f"its process ended with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # one of those without a name
        name = f"signal {-code}"
    memory = ", as happens when memory runs out" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{memory}"


def end_with_parent() -> None:
    """Has this process end by SIGTERM when the one that made it has ended.

    A process that is killed cannot end those that it has made.
    """

    def wait_and_end():
        multiprocessing.parent_process().join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_and_end, daemon=True).start()
