"""Answers `benchmarks.alone.start`: what the process of a peer does.

A line of standard input asks, and a line of standard output answers. The first names
what is prepared, and each further one asks for a call. Run by its path, it prepares
models of the checkout whose modules are on the path, and imports nothing from here.
"""

import json
import os
import signal
import sys
from collections.abc import Callable


def serve(prepare: Callable) -> None:
    """Answers until nothing more is asked.

    Args:
      prepare: function of what the first line holds. It returns the call, the number of
        parameters, and what ends it.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it ends without a traceback
    # Libraries print to standard output, too, past Python even.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(content):
        print(json.dumps(content), file=answers, flush=True)

    try:
        call, parameters, close = prepare(*json.loads(sys.stdin.readline()))
        answer({"parameters": parameters})
        for _ in sys.stdin:
            call()
            answer({})
        close()
    except BrokenPipeError:  # who asked has ended
        return
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        reason = " ".join(str(error).split())[:400]
        if "UserError" in kinds:  # of whichever checkout
            answer({"error": reason})
        else:
            answer({"ended": f"{kinds[0]}: {reason}"})


def _prepare(name, setting, batch_size, length):
    from benchmarks.calls import Setting, check, prepare
    from common.errors import UserError

    for field in setting.keys() - set(Setting._fields):
        raise UserError(f"expected some of {Setting._fields}, found {field!r}")
    setting = Setting(**setting)
    check([name], setting)
    prepared = prepare(name, setting, batch_size, length)
    return prepared.call, prepared.parameters, prepared.close


if __name__ == "__main__":
    serve(_prepare)
