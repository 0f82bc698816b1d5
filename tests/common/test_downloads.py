"""Downloads from servers that answer, refuse, stop half-way or send another file."""

import hashlib
import time
from functools import partial

import pytest

from common import downloads
from common.downloads import DownloadError, download
from tests import loopback

CONTENT = b"word\n" * 20_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def served(tmp_path, answer):
    path = tmp_path / "file"
    with loopback.serving({"file": answer}) as (url, _):
        download(f"{url}/file", path, SHA256)
    return path.read_bytes()


def test_a_download_is_shown(tmp_path, capsys):
    assert served(tmp_path, CONTENT) == CONTENT
    output = capsys.readouterr()
    assert output.out == ""
    assert "downloading: 100%" in output.err and "100k/100k" in output.err


def test_a_slow_server_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "SILENCE_SECONDS", 2)
    slow = partial(loopback.send, content=CONTENT, seconds=0.5)
    assert served(tmp_path, slow) == CONTENT


def test_a_server_that_stops_halfway_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "SILENCE_SECONDS", 1)
    stops = partial(loopback.send, content=CONTENT, seconds=3, seconds_before=0)
    with pytest.raises(DownloadError, match="/file: no answer for 1 s$"):
        served(tmp_path, stops)


def test_a_host_whose_name_is_looked_up_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: time.sleep(2))
    start = time.monotonic()
    with pytest.raises(DownloadError, match="^http://nowhere.test/file: no answer"):
        download("http://nowhere.test/file", tmp_path / "file", SHA256)
    assert time.monotonic() - start < 1.5


@pytest.mark.parametrize(
    "answer, reason",
    [
        (None, "HTTP Error 404: Not Found"),
        (CONTENT[1:], "another file, of SHA-256 [0-9a-f]{64}"),
        (lambda handler: None, "Remote end closed connection without response"),
    ],
)
def test_what_comes_instead_of_the_file_is_named(tmp_path, answer, reason):
    with pytest.raises(DownloadError, match=f"^http://127.0.0.1:[0-9]+/file: {reason}"):
        served(tmp_path, answer)


def test_a_refused_connection_and_a_file_not_written_are_told_apart(tmp_path):
    url = loopback.closed()
    with pytest.raises(DownloadError, match=f"^{url}: Connection refused$"):
        download(url, tmp_path / "file", SHA256)
    with (
        pytest.raises(IsADirectoryError),
        loopback.serving({"file": CONTENT}) as (x, _),
    ):
        download(f"{x}/file", tmp_path, SHA256)
