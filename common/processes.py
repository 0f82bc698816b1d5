"""Processes that others make."""

import multiprocessing
import os
import signal
import threading


def end_with_parent() -> None:
    """Has this process end by SIGTERM when the one that made it has ended.

    A process that is killed cannot end those that it has made.
    """
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end():
    multiprocessing.parent_process().join()
    os.kill(os.getpid(), signal.SIGTERM)
