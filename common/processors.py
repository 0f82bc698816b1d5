"""How many processors there are to use."""

import os


def num_usable() -> int:
    """Those that this process may use, where the system says so, or all."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
