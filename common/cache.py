"""Folders that are made once: whole or not at all, by one process or by several."""

import contextlib
import errno
import fcntl
import functools
import logging
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from common import checksums
from common.checksums import DamagedError
from common.errors import UserError
from common.paths import check_writable_folder, is_remote, remove_folder

PREFIX, LOCK = "transevolve-unfinished-", ".lock"
# What a file system says that has no locks, as some network mounts have none.
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
# Of a write, which does not name the file; NumPy's has no number.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, None}

logger = logging.getLogger("transevolve")


def cached(folder: Path, make: Callable[[Path], None]) -> Path:
    """Returns a folder that `make` has filled, now or in an earlier run.

    Of several processes that make it at one time, the first to be done keeps its own.
    A damaged folder is made again, and stays where that fails. Where nothing can be
    written, it is made in a temporary folder, which goes with this process.

    Args:
      folder: its path.
      make: function of a new folder that writes files to it.
    """
    if folder.exists():
        try:
            checksums.check(folder)
            return folder
        except DamagedError as error:
            logger.warning("%s; it is made again", error)
    try:
        check_writable_folder(folder.parent, "--config.data.cache_dir")
    except UserError as error:
        logger.warning("warning: %s; the next run makes %s again", error, folder.name)
        return cached(Path(_temporary_folder().name, folder.name), make)
    remote = is_remote(folder)
    with tempfile.TemporaryDirectory() if remote else unfinished(folder.parent) as new:
        new = Path(new)
        try:
            make(new)
            checksums.write(new, [path.name for path in new.iterdir()])
        except OSError as error:
            if error.filename or error.errno not in FULL:
                raise
            reason = error.strerror or f"{error}, disk full or ulimit -f too low"
            raise OSError(error.errno, reason, str(folder)) from None
        put = _put_remote if remote else _put
        put(new, folder)
    return folder


@functools.cache
def _temporary_folder():
    return tempfile.TemporaryDirectory()


def _put(new, folder):
    """Gives a new folder its name; one that another process has put there stays."""
    try:
        if folder.exists():
            checksums.check(folder)
    except DamagedError:
        # Out of the way at once: another process may be about to do the same.
        with unfinished(folder.parent) as aside, contextlib.suppress(FileNotFoundError):
            folder.rename(aside / folder.name)
    try:
        new.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        checksums.check(folder)


def _put_remote(new, folder):
    """There no folder is renamed in one go: what says that it is whole comes last."""
    remove_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(new.iterdir(), key=lambda path: path.name == checksums.NAME):
        (folder / path.name).write_bytes(path.read_bytes())


@contextmanager
def unfinished(parent: Path):
    """A new folder in `parent`, which is removed in the end if it is still there.

    What killed processes of this user have left there is removed first; what a process
    still writes to is left alone. A lock tells them apart, which the system opens when
    its process ends. On a file system without locks all is left.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _clean(parent)
    with tempfile.NamedTemporaryFile(
        dir=parent, prefix=PREFIX, suffix=LOCK, delete=False
    ) as file:
        lock = Path(file.name)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        folder = lock.with_suffix("")
        folder.mkdir()
        try:
            yield folder
        finally:
            remove_folder(folder)
            lock.unlink(missing_ok=True)


def _clean(parent):
    for lock in parent.glob(f"{PREFIX}*{LOCK}"):
        try:
            with lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_folder(lock.with_suffix(""))
                lock.unlink(missing_ok=True)
        except OSError:
            continue  # in use, just gone, another user's, or nobody can tell
