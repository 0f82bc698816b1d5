"""The lock of a workdir, and workdirs that can have none."""

import errno
import fcntl
import os

import pytest

from common.errors import UserError
from tests.rights import nobodys, open_folder
from training.lock import locked


def test_a_file_system_without_locks_is_warned_about(tmp_path, monkeypatch, caplog):
    def lockf(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", lockf)
    with locked(tmp_path / "run"):
        pass
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.startswith(
        f"warning: --workdir={tmp_path}/run: its file system has no"
    )


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda path: path.symlink_to("gone/away"), "a link to nothing"),
        (lambda path: path.symlink_to(path), "a loop of links"),
        (lambda path: path.symlink_to("/dev/null"), "a device or a pipe"),
        (lambda path: path.touch(), "a file"),
    ],
)
def test_what_is_no_folder_is_named(tmp_path, make, reason):
    path = tmp_path / "run"
    make(path)
    with pytest.raises(UserError) as error, locked(path):
        pass
    assert str(error.value) == (
        f"--workdir={path}: expected a folder that can be written, found {path}: "
        f"{reason}"
    )
    assert os.listdir(tmp_path) == ["run"]


def test_what_is_closed_is_named():
    with open_folder() as folder:
        folder.chmod(0o555)
        refused = pytest.raises(UserError, match=f"found {folder}: Permission denied")
        with nobodys(), refused, locked(folder / "new/run"):
            pass
