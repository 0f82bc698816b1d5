"""A process for each script or call, forked from one that has imported TensorFlow.

Importing takes seconds, and there are many tests of scripts. Importing starts neither
threads nor devices of TensorFlow, so a fork is what a new process would be. This
module is what the parent of the forks imports.
"""

import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import tensorflow_text  # noqa: F401

import common.cli  # noqa: F401
import evaluation.answer_lines  # noqa: F401
import evaluation.evaluate  # noqa: F401
import export.saved_model  # noqa: F401
import reporting.evaluation  # noqa: F401
import training.train  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])
# Looking for garbage would also copy the pages that forks share.
gc.freeze()


def run(name: str, arguments: list[str], input_text: str = "", timeout: float = 600):
    """Runs a script of the repository; a `subprocess.CompletedProcess`."""
    with tempfile.TemporaryDirectory() as folder:
        process = start(name, arguments, Path(folder), input_text)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired([name, *arguments], timeout)
        stdout, stderr = (Path(folder, x).read_text() for x in ("stdout", "stderr"))
    return subprocess.CompletedProcess(
        [name, *arguments], process.exitcode, stdout, stderr
    )


def call(function, *arguments):
    """What a function of a module returns, called in a process of its own.

    What TensorFlow keeps to the end, as programs that XLA has compiled, ends with it.
    """
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as process:
        return process.submit(function, *arguments).result()


def start(name, arguments, folder: Path, input_text="", environment=None):
    """Starts a script; its process. Its streams are files in the folder."""
    (folder / "stdin").write_text(input_text, "utf-8", "surrogateescape")
    process = CONTEXT.Process(
        target=_run, args=(name, arguments, folder, environment or {})
    )
    process.start()
    return process


def _run(name, arguments, folder, environment):
    # As in a terminal, wherever the tests run: in the background SIGINT is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(ROOT)
    os.environ.update(environment)
    streams = {"stdin": "r", "stdout": "w", "stderr": "w"}
    for number, (stream, mode) in enumerate(streams.items()):
        with open(Path(folder, stream), mode) as file:
            os.dup2(file.fileno(), number)
        setattr(sys, stream, open(number, mode, closefd=False))  # noqa: SIM115
    sys.argv = [name, *arguments]
    runpy.run_path(name, run_name="__main__")
