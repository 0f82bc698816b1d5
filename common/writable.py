"""Whether a folder or a file can be written, told before the work."""

import errno
import os
import stat
import tempfile
from pathlib import Path

from common.errors import UserError
from common.paths import is_remote


def check_writable_folder(path: Path, what: str, by_rename: bool = False) -> None:
    """Checks, before the work, that a folder can be made and files in it be written.

    It is tried where the folder is to be, as no permissions tell what root or a file
    system that is read-only may do. Nothing stays of the trial.

    Args:
      path: that may be there already. A remote one is not checked.
      what: the flag that gives it, for errors.
      by_rename: whether it is written beside the path and then renamed to it, which
        may be an empty folder.

    Raises:
      UserError: if it cannot be written.
    """
    if not is_remote(path):
        expected = f"{what}={path}: expected a folder that can be written"
        _try_to_write(path, expected, by_rename)


def check_writable_file(path: Path, what: str) -> None:
    """Checks, before the work, that a file can be written, or replaced.

    Args:
      path: in a folder that is made if it is missing. A remote one is not checked.
      what: the flag that gives it, for errors.

    Raises:
      UserError: if it cannot be written, or is there as something else than a file.
    """
    if is_remote(path):
        return
    expected = f"{what}={path}: expected a file that can be written"
    if os.path.lexists(path):
        if (kind := _kind(path)) != "a file":
            raise UserError(f"{expected}, found {kind}")
        try:
            path.open("ab").close()
        except OSError as error:
            raise UserError(f"{expected}, found {error.strerror}") from None
    _try_to_write(path.parent, expected, file=path.name)


def _try_to_write(folder, expected, by_rename=False, file="file"):
    existing = folder
    while not os.path.lexists(existing):
        existing = existing.parent
    if (kind := _kind(existing)) != "a folder":
        raise UserError(f"{expected}, found {existing}: {kind}")
    is_replaced = by_rename and existing == folder
    try:
        parent = folder.parent if is_replaced else existing
        with tempfile.TemporaryDirectory(dir=parent) as trial:
            twin = Path(trial, folder.relative_to(existing))
            twin.mkdir(parents=True, exist_ok=True)
            (twin / file).touch()
            if is_replaced:
                _try_to_replace(folder, trial)
    except OSError as error:
        reason = error.strerror
        if error.errno == errno.EBUSY:
            reason = "a mount point, which cannot be replaced; give a folder in it"
        raise UserError(f"{expected}, found {existing}: {reason}") from None


def _try_to_replace(folder, trial):
    with tempfile.NamedTemporaryFile(dir=folder):
        try:
            os.rename(trial, folder)
        except OSError as error:
            # That it is not empty is asked last.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _kind(path):
    """What is at a path, with links followed, in words."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "a link to nothing"
    except OSError as error:
        return "a loop of links" if error.errno == errno.ELOOP else error.strerror
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a file" if stat.S_ISREG(mode) else "a device or a pipe"
