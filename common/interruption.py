"""Being told to stop: by Ctrl-C, by a terminal that closes, by a machine going away."""

import signal
import threading
from contextlib import contextmanager

from common.errors import UserError

# EX_TEMPFAIL of sysexits.h: to be tried again.
EXIT_CODE = 75
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(UserError):
    """A signal ended the training; what was learned is saved."""


class Interruption:
    """Whether a signal has come.

    Attributes:
      name: of the first of `SIGNALS` that came; None before.
    """

    name: str | None = None

    def __bool__(self):
        return self.name is not None


@contextmanager
def catch_signals():
    """Within it, the first signal is only noted; a second one ends the process.

    What the process was told to ignore, as by nohup, it goes on to ignore.

    Yields:
      An `Interruption`. Outside of the main thread, which alone has signals, it stays
      false.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {
        number: handler
        for number in SIGNALS
        if (handler := signal.getsignal(number)) is not signal.SIG_IGN
    }

    def restore():
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number, frame):
        interruption.name = signal.Signals(number).name
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield interruption
    finally:
        restore()
