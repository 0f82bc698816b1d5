"""One writer to a workdir at a time."""

import fcntl
import logging
import os
import socket
from contextlib import contextmanager
from pathlib import Path

from common.cache import NO_LOCKS
from common.errors import UserError
from common.paths import check_writable_folder, is_remote

NAME = "lock"

logger = logging.getLogger("transevolve")


class LockedError(UserError):
    """Another process writes to the workdir."""


@contextmanager
def locked(workdir: Path, name: str = NAME):
    """Holds the lock of a workdir, which is made if it is not there.

    The system lets go of the lock when the process ends, however it ends.

    Args:
      workdir: of a run.
      name: of the lock's file; locks of other names are others.

    Raises:
      LockedError: if another process holds it; the message says which.
      UserError: if the workdir cannot be written, or the file of the lock's name is
        another.
    """
    check_writable_folder(workdir, "--workdir")
    workdir.mkdir(parents=True, exist_ok=True)
    if is_remote(workdir):  # no lock there: who starts two processes is not told
        yield
        return
    with open(workdir / name, "a+", errors="replace") as file:
        try:
            # Not by flock, which processes forked from this one would hold on to.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.seek(0)
            raise LockedError(
                f"--workdir={workdir}: expected a workdir that no other process writes "
                f"to, found {file.read().strip() or 'one that does'}"
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            logger.warning(
                "warning: --workdir=%s: its file system has no locks; another process "
                "that writes to it is not noticed",
                workdir,
            )
        file.seek(0)
        content = file.read(20)
        if content and not content.startswith("process "):
            raise UserError(f"{workdir / name}: expected our lock, found another file")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
