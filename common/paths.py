"""Paths that users give: local ones, and remote ones such as gs://BUCKET/FOLDER.

Whether something can be written there is told before the work.
"""

import errno
import os
import shutil
import stat
import tempfile
import uuid
from pathlib import Path

from common.errors import UserError
from common.processes import within

# What TensorFlow does not take literally in the name of a checkpoint.
PATTERN = "[]*?\\"
# For the first answer of a remote folder. TensorFlow goes on asking for minutes, which
# is right for a folder that has answered before.
SECONDS_TO_ANSWER = 20


def make_path(text, what: str) -> Path:
    """The path of a text, with ~ expanded.

    A remote path is an `etils.epath.Path`, which reads and writes by TensorFlow.

    Args:
      text: or a path.
      what: the flag that gives it, for errors.

    Raises:
      UserError: if it is empty, of a kind that TensorFlow does not know, or remote and
        not answered for.
    """
    if not str(text).strip():
        raise UserError(f"{what}: expected a path, found an empty one")
    if "\0" in str(text):
        raise UserError(f"{what}: expected a path, found a zero byte in it")
    if not is_remote(text):
        try:
            return Path(text).expanduser()
        except RuntimeError as error:
            raise UserError(f"{what}: expected a path, found {text}: {error}") from None
    if pattern := set(PATTERN) & set(str(text)):
        # TensorFlow takes the names of checkpoints for patterns.
        raise UserError(
            f"{what}: expected a remote path without {PATTERN}, found {pattern.pop()}"
        )
    import tensorflow as tf  # takes a while, and few need it
    from etils import epath

    try:
        path = epath.Path(text)
        within(SECONDS_TO_ANSWER, path.exists)
        return path
    except (KeyError, tf.errors.UnimplementedError):
        scheme = str(text).split("://")[0]
        raise UserError(
            f"{what}: expected a local path or gs://BUCKET/..., found {scheme}://"
        ) from None
    except TimeoutError:
        reason = f"no answer in {SECONDS_TO_ANSWER} s"
    except tf.errors.OpError as error:
        reason = " ".join(error.message.split())[:300]
    expected = "expected a remote path that answers"
    raise UserError(f"{what}={text}: {expected}, found {reason}")


def make_local_path(text, what: str) -> Path:
    """Makes what `make_path` makes, of a path that must be of this machine.

    Raises:
      UserError: as `make_path`, and if it is remote.
    """
    if is_remote(text):
        raise UserError(f"{what}={text}: expected a folder of this machine")
    return make_path(text, what)


def is_remote(path) -> bool:
    """Whether a path is on another machine: without locks, and written in one go."""
    return "://" in str(path)


def full_name(path: Path) -> str:
    """The path as it is called from any folder."""
    return str(path if is_remote(path) else path.resolve())


def remove_folder(path: Path) -> None:
    """Removes a folder and all in it, if it is there."""
    if is_remote(path):
        path.rmtree(missing_ok=True)
    elif path.exists():
        shutil.rmtree(path)


def move(source: Path, target: Path) -> None:
    """Gives a file or a folder another name, that of another one maybe, which goes.

    A remote folder is copied file by file, and removed when all are there.
    """
    if not is_remote(source):
        if source.is_dir():
            remove_folder(target)
        source.replace(target)
    elif source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        for path in source.iterdir():
            _copy(path, target / path.name)
        remove_folder(source)
    else:
        _copy(source, target)
        source.unlink()


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file, whole or not at all; other processes may write it, too."""
    # Not the name and more: a remote folder may take what others begin with for one.
    # Machines that share a folder may have processes of one number.
    unfinished = path.with_name(f"unfinished-{uuid.uuid4().hex}-{path.stem}")
    if isinstance(content, str):
        content = content.encode()
    try:
        unfinished.write_bytes(content)
        move(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _copy(source, target):
    # Not all file systems of TensorFlow overwrite.
    target.unlink(missing_ok=True)
    source.copy(target)


def size(path: Path) -> int:
    """Bytes of a file."""
    status = path.stat()
    return status.length if is_remote(path) else status.st_size


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
