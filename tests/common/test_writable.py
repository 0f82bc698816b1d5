"""What is told of a path before anything is written there."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from common.errors import UserError
from common.paths import check_writable_file, check_writable_folder
from tests.conftest import ROOT


@pytest.fixture
def folder(tmp_path):
    """A folder with something of each kind in it."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to(tmp_path / "pool")
    (tmp_path / "pool").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def names(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


@pytest.mark.parametrize("by_rename", [False, True])
@pytest.mark.parametrize("name", ["new", "new/er", "new/../x", "empty", "empty/new"])
def test_a_folder_that_can_be_written(folder, name, by_rename):
    before = names(folder)
    check_writable_folder(folder / name, "--output", by_rename)
    assert names(folder) == before
    # As what is checked is done then.
    (folder / name).mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("by_rename", [False, True])
@pytest.mark.parametrize(
    "name, reason",
    [
        ("file", "file: a file"),
        ("file/new", "file: a file"),
        ("loop", "loop: a loop of links"),
        ("loop/new", "loop: a loop of links"),
        ("dangling", "dangling: a link to nothing"),
        ("dangling/new", "dangling: a link to nothing"),
        ("pipe", "pipe: a device or a pipe"),
        ("x" * 300, ": File name too long"),
        ("new/" + "x" * 300, ": File name too long"),
    ],
)
def test_a_folder_that_cannot_be_written(folder, name, reason, by_rename):
    before = names(folder)
    path = folder / name
    with pytest.raises(UserError) as caught:
        check_writable_folder(path, "--output", by_rename)
    said = str(caught.value)
    assert said.startswith(f"--output={path}: expected a folder that can be written")
    assert said.endswith(reason)
    assert names(folder) == before


@pytest.mark.parametrize("name", ["new", "new/er", "file", "empty/new", "link/new"])
def test_a_file_that_can_be_written(folder, name):
    before = names(folder)
    check_writable_file(folder / name, "--plot")
    assert names(folder) == before
    assert (folder / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name, reason",
    [
        ("empty", "a folder"),
        ("link", "a folder"),
        ("loop", "a loop of links"),
        ("dangling", "a link to nothing"),
        ("pipe", "a device or a pipe"),
        ("file/new", "a file"),
        ("loop/new", "a loop of links"),
        ("x" * 300, "File name too long"),
        ("new/" + "x" * 300, "File name too long"),
    ],
)
def test_a_file_that_cannot_be_written(folder, name, reason):
    before = names(folder)
    path = folder / name
    with pytest.raises(UserError) as caught:
        check_writable_file(path, "--plot")
    said = str(caught.value)
    assert said.startswith(f"--plot={path}: expected a file that can be written, found")
    assert said.endswith(reason)
    assert names(folder) == before


def test_a_device_is_neither():
    for check in (check_writable_folder, check_writable_file):
        with pytest.raises(UserError, match="a device or a pipe$"):
            check(Path("/dev/null"), "--output")


@contextmanager
def somebody_else():
    """Not root, whom no permission stops."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_the_folder_of_somebody_else():
    # Not below pytest's folder, which somebody else cannot even search.
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "file").touch(mode=0o444)
        folder.chmod(0o555)
        for name in ("", "new", "new/er"):
            with somebody_else(), pytest.raises(UserError, match="Permission denied$"):
                check_writable_folder(folder / name, "--output")
        for name in ("file", "new"):
            with somebody_else(), pytest.raises(UserError, match="Permission denied$"):
                check_writable_file(folder / name, "--plot")
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_mounted_folder_is_writable_unless_read_only(tmp_path):
    """One that is there to be filled, and one that is read-only."""
    script = f"""
from pathlib import Path
from common.errors import UserError
from common.paths import check_writable_file, check_writable_folder
check_writable_folder(Path("{tmp_path}/mounted"), "--output")
check_writable_folder(Path("{tmp_path}/mounted/new"), "--output", True)
for check, path, *more in [
    (check_writable_folder, "mounted", True),
    (check_writable_folder, "sealed"),
    (check_writable_folder, "sealed/new"),
    (check_writable_file, "sealed/new"),
]:
    try:
        check(Path("{tmp_path}") / path, "--output", *more)
    except UserError as error:
        print(error)
"""
    for name in ("mounted", "sealed", "bound"):
        (tmp_path / name).mkdir()
    # A mount of the same file system, which no device number tells.
    mount = (
        f"mount --bind {tmp_path}/bound {tmp_path}/mounted && "
        f'mount -t tmpfs -o ro none {tmp_path}/sealed && exec "$@"'
    )
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", sys.executable, "-c", script]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if done.returncode and "Traceback" not in done.stderr:
        pytest.skip(f"needs to mount: {done.stderr}")
    assert done.returncode == 0, done.stderr
    a_folder, a_file = (
        f": expected a {kind} that can be written, found {tmp_path}/"
        for kind in ("folder", "file")
    )
    assert done.stdout.splitlines() == [
        f"--output={tmp_path}/mounted{a_folder}mounted: a mount point, which cannot be "
        "replaced; give a folder in it",
        f"--output={tmp_path}/sealed{a_folder}sealed: Read-only file system",
        f"--output={tmp_path}/sealed/new{a_folder}sealed: Read-only file system",
        f"--output={tmp_path}/sealed/new{a_file}sealed: Read-only file system",
    ]
    assert list((tmp_path / "bound").iterdir()) == []
