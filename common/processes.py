"""Processes that others make."""

import multiprocessing
import os
import signal
import threading


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
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end():
    multiprocessing.parent_process().join()
    os.kill(os.getpid(), signal.SIGTERM)
