"""Calls in processes of their own."""

import json
import multiprocessing
import subprocess
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from common.errors import UserError
from common.processes import end_with_parent, ending


class ProcessEnded(UserError):
    """A process ended before it was done; the message says which, and how it ended."""


class Peer(NamedTuple):
    """A process that makes one call each time it is asked."""

    call: Callable[[], None]
    parameters: int
    close: Callable[[], None]


def start(title: str, command: list[str], question: list, **options) -> Peer:
    """Starts a process that answers as `benchmarks.peer_process` does.

    Args:
      title: what it does, for errors.
      command: of the process.
      question: what it is to prepare.
      **options: of `subprocess.Popen`.

    Raises:
      UserError: if it cannot prepare that.
      ProcessEnded: if it ends, here or in a call.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
    )

    def ask(question):
        with suppress(BrokenPipeError):  # it has ended, and answers nothing
            print(json.dumps(question), file=process.stdin, flush=True)
        line = process.stdout.readline()
        is_whole = line.endswith("\n")
        answer = json.loads(line) if is_whole else {"ended": ending(close())}
        for kind, error in (("ended", ProcessEnded), ("error", UserError)):
            if kind in answer:
                close()
                raise error(f"{title}: {answer[kind]}")
        return answer

    def close():
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        return process.wait()

    return Peer(lambda: ask("call"), ask(question)["parameters"], close)


def run_alone(title: str, function: Callable, *arguments):
    """What a function returns, called in a process of its own.

    What it raises is raised here, with its traceback there as a note.

    Raises:
      ProcessEnded: that starts with the title.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, function, arguments))
    process.start()
    there.close()
    try:
        result, error = here.recv()
    except EOFError:
        process.join()
        raise ProcessEnded(f"{title}: {ending(process.exitcode)}") from None
    process.join()
    if error is not None:
        raise error
    return result


def _answer(connection, function, arguments):
    end_with_parent()
    try:
        answer = function(*arguments), None
    except Exception as error:
        error.add_note(traceback.format_exc())
        answer = None, error
    connection.send(answer)
