"""Functions that run in processes of their own, by this checkout's code or another's.

The process runs this file by its path, so all modules that it imports are those of the
checkout on Python's path. A byte on its standard input asks for the next answer, which
is a line of JSON.
"""

import importlib
import inspect
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from pathlib import Path

from common.errors import UserError

ROOT = Path(__file__).resolve().parents[1]


class ProcessEnded(UserError):
    """A process ended before it was done; the message says which, and how it ended."""


def run_alone(title: str, function: Callable, *arguments):
    """What a function of a module returns, called in a process of its own.

    Args:
      title: what it does, for errors.
      function: its arguments and what it returns can be written as JSON.
      *arguments: of the function.

    Raises:
      UserError, ProcessEnded: as `start`.
    """
    name = f"{function.__module__}:{function.__qualname__}"
    with closing(start(title, name, *arguments)) as answers:
        return next(answers)


def start(title: str, function: str, *arguments, checkout: Path = ROOT) -> Generator:
    """Yields what a generator yields in a process of its own, which waits in between.

    The process starts with the first answer. It ends when this is closed, and when
    this process ends, however that happens.

    Args:
      title: what it does, for errors.
      function: "MODULE:NAME" of the generator function.
      *arguments: of the function, as JSON.
      checkout: the folder whose modules the process imports.

    Raises:
      UserError: as the function raises it.
      ProcessEnded: if the process ends, or the function raises anything else.
    """
    from common.processes import ending  # not in every checkout

    path = [str(checkout.resolve()), os.environ.get("PYTHONPATH")]
    process = subprocess.Popen(
        # With -P Python leaves out the folder of this file.
        [sys.executable, "-P", __file__, function, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
    )
    try:
        while True:
            with suppress(BrokenPipeError):  # it has ended, and answers nothing
                print(file=process.stdin, flush=True)
            line = process.stdout.readline()
            if not line.endswith("\n"):
                raise ProcessEnded(f"{title}: {ending(process.wait())}")
            kind, content = json.loads(line)
            if kind == "mistake":
                raise UserError(f"{title}: {content}")
            if kind == "failure":
                raise ProcessEnded(f"{title}: {content}")
            yield content
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.wait()


def model_calls(name: str, setting: dict, batch_size: int, length: int) -> Generator:
    """Yields a model's parameters and updates of a call, then nothing after each call.

    The model is that of the checkout on the path.

    Args:
      name: of a variant.
      setting: fields of that checkout's `calls.Setting`.
      batch_size, length: of the batch.

    Raises:
      UserError: if that checkout cannot make the model.
    """
    from benchmarks.calls import Setting, check, prepare

    if "jit_compile" in Setting._fields:  # as earlier commits call it
        setting["jit_compile"] = setting.pop("xla", False)
    for field in setting.keys() - set(Setting._fields):
        raise UserError(f"expected some of {Setting._fields}, found {field!r}")
    setting = Setting(**setting)
    check([name], setting)
    prepared = prepare(name, setting, batch_size, length)
    if reason := getattr(prepared, "not_run", None):  # earlier commits have none
        raise MemoryError(reason)
    # Earlier commits make one update.
    yield prepared.parameters, getattr(prepared, "steps", 1)
    while True:
        prepared.call()
        yield


def peak_bytes() -> int:
    """The most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage(): on Linux it counts what the parent held at the fork.
        lines = status.read_text().splitlines()
        line = next(line for line in lines if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes


def _serve(function, arguments):
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it ends without a traceback
    # Libraries print to standard output, too, past Python even.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    asked = threading.Semaphore(0)

    def listen():
        while os.read(0, 1):
            asked.release()
        os._exit(0)  # who asked has all it needs, or has ended

    threading.Thread(target=listen, daemon=True).start()

    def answer(kind, content):
        with suppress(BrokenPipeError):
            print(json.dumps([kind, content]), file=answers, flush=True)

    asked.acquire()
    try:
        module, _, name = function.partition(":")
        result = getattr(importlib.import_module(module), name)(*json.loads(arguments))
        for content in result if inspect.isgenerator(result) else [result]:
            answer("value", content)
            asked.acquire()
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        reason = " ".join(str(error).split())[:400]
        if "UserError" in kinds:  # of whichever checkout
            answer("mistake", reason)
        else:
            answer("failure", f"{kinds[0]}: {reason}")


if __name__ == "__main__":
    _serve(*sys.argv[1:])
