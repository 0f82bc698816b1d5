"""Folders that are made once."""

import errno
import fcntl
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from common.cache import LOCK, PREFIX, cached, unfinished
from tests.rights import nobodys, open_folder


def write(folder):
    (folder / "a").write_text("content")


def never(folder):
    raise AssertionError("made twice")


def test_a_folder_is_made_once(tmp_path):
    folder = cached(tmp_path / "new/it", write)
    assert (folder / "a").read_text() == "content"
    assert cached(tmp_path / "new/it", never) == folder
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["it"]


@pytest.mark.parametrize("content", ["", "other", None])
@pytest.mark.parametrize("name", ["a", "checksums.json"])
def test_a_damaged_one_is_made_again(tmp_path, name, content, caplog):
    path = cached(tmp_path / "it", write) / name
    path.unlink() if content is None else path.write_text(content)
    cached(tmp_path / "it", write)
    assert str(path) in caplog.text and "made again" in caplog.text
    cached(tmp_path / "it", never)


def test_what_fails_leaves_nothing_new(tmp_path):
    with pytest.raises(AssertionError):
        cached(tmp_path / "it", never)
    assert not list(tmp_path.iterdir())
    path = cached(tmp_path / "it", write) / "a"
    path.write_text("damaged")
    with pytest.raises(AssertionError):
        cached(tmp_path / "it", never)
    assert path.read_text() == "damaged"
    assert os.listdir(tmp_path) == ["it"]


def _write_until_killed(parent):
    with unfinished(parent) as folder:
        write(folder)
        time.sleep(600)


def test_leftovers_of_the_killed_go_and_those_of_the_living_stay(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_write_until_killed, args=(tmp_path,)) for _ in range(2)
    ]
    for number, writer in enumerate(writers, start=1):
        writer.start()
        while len(list(tmp_path.glob("transevolve-unfinished-*/a"))) < number:
            time.sleep(0.01)
    writers[0].kill()
    writers[0].join()
    with unfinished(tmp_path) as folder:
        kept = {path.parent for path in tmp_path.glob("transevolve-unfinished-*/a")}
        assert len(kept) == 1 and folder not in kept
    writers[1].kill()
    writers[1].join()
    with unfinished(tmp_path):
        assert not list(tmp_path.glob("transevolve-unfinished-*/a"))
    assert not list(tmp_path.iterdir())


def test_the_first_of_two_keeps_its_own(tmp_path):
    def slow(folder):
        cached(tmp_path / "it", write)  # the other
        (folder / "a").write_text("mine")

    assert (cached(tmp_path / "it", slow) / "a").read_text() == "content"
    assert os.listdir(tmp_path) == ["it"]


def test_brackets_in_a_name(tmp_path):
    folder = Path(tmp_path / "a [b] ü")
    assert (cached(folder / "it", write) / "a").exists()
    assert os.listdir(folder) == ["it"]


def test_what_others_have_closed_blocks_nobody():
    """Another user's lock, held or not, and what a killed process of theirs left."""
    with open_folder() as folder:
        folder.chmod(0o1777)
        closed = [folder / f"{PREFIX}{name}{LOCK}" for name in ("closed", "open")]
        for path in closed:
            path.with_suffix("").mkdir()
            write(path.with_suffix(""))
            path.touch()
        closed[0].chmod(0)
        closed[0].with_suffix("").chmod(0o555)
        closed[1].with_suffix("").chmod(0o555)
        with nobodys():
            assert (cached(folder / "it", write) / "a").read_text() == "content"
        assert all((path.with_suffix("") / "a").exists() for path in closed)


def test_where_nothing_can_be_written_it_is_made_for_this_process(caplog):
    with open_folder() as folder:
        folder.chmod(0o555)
        with nobodys():
            for make in (write, never):
                path = cached(folder / "it", make)
                assert (path / "a").read_text() == "content"
        assert not list(folder.iterdir())
    assert f"--config.data.cache_dir={folder}: expected a folder that ca" in caplog.text


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    (tmp_path / f"{PREFIX}1{LOCK}").touch()  # somebody's, of whom nothing is known

    def flock(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    assert (cached(tmp_path / "it", write) / "a").read_text() == "content"
    assert sorted(os.listdir(tmp_path)) == ["it", f"{PREFIX}1{LOCK}"]


@pytest.mark.parametrize(
    "error, reason",
    [
        (OSError(errno.EFBIG, "File too large"), "File too large"),
        (OSError("9 requested and 4 written"), "9 requested and 4 written, disk full"),
    ],
)
def test_what_could_not_be_written_is_named(tmp_path, error, reason):
    def full(folder):
        raise error

    with pytest.raises(OSError, match=f"{reason}.*'{tmp_path}/it'"):
        cached(tmp_path / "it", full)
    assert not list(tmp_path.iterdir())
