"""WikiText-103: its archive from a server, and its folder."""

import hashlib
import io
import zipfile

import pytest

from common import downloads
from configs import wikitext_103 as config_file
from data.datasets import wikitext_103
from data.rows import DataError, Line
from tests import loopback

TEXTS = {"train": " = Title = \n", "valid": " a b \n\n", "test": " c <unk> \n"}


def config(folder, **changes):
    made = config_file.get_config().data
    made.update({"cache_dir": str(folder / "cache"), **changes})
    return made


def texts(data, split):
    return [row.text for row in wikitext_103.read(data, split)]


@pytest.fixture
def archive(monkeypatch):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, text in TEXTS.items():
            packed.writestr(f"wikitext-103/wiki.{name}.tokens", text)
    content = buffer.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(wikitext_103, "SHA256", digest)
    yield content
    wikitext_103._downloaded.cache_clear()


def test_the_archive_is_downloaded_once(archive, tmp_path, monkeypatch):
    agents = []

    def answer(handler):
        agents.append(handler.headers["User-Agent"])
        loopback.send(handler, archive)

    data = config(tmp_path)
    with loopback.serving({"it.zip": answer}) as (url, _):
        monkeypatch.setattr(wikitext_103, "URL", f"{url}/it.zip")
        assert texts(data, "train") == [b" = Title = "]
    assert texts(data, "validation") == [b" a b ", b""]
    assert texts(data, "test") == [b" c <unk> "]
    assert agents == ["transevolve"]
    files = sorted((tmp_path / "cache/wikitext-103").glob("[!.]*.tokens"))
    assert [file.read_text() for file in files] == [*map(TEXTS.get, sorted(TEXTS))]


def test_another_archive_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "SILENCE_SECONDS", 1)
    with loopback.serving({"it.zip": b"another"}) as (url, _):
        monkeypatch.setattr(wikitext_103, "URL", f"{url}/it.zip")
        with pytest.raises(DataError) as error:
            texts(config(tmp_path), "test")
    assert str(error.value).startswith(
        "--config.data.dir: expected a folder, or to download WikiText-103, of SHA-256 "
        f"242ba0f2…, found {url}/it.zip: another file, of SHA-256 "
    )
    assert str(error.value).endswith(
        "Instead you can give the folder of wiki.*.tokens (--config.data.dir=FOLDER)"
    )


def test_a_folder_is_read(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / f"wiki.{name}.tokens").write_text(text)
    data = config(tmp_path, dir=str(tmp_path))
    assert [*wikitext_103.read(data, "validation")] == [Line(b" a b "), Line(b"")]
    (tmp_path / "wiki.test.tokens").unlink()
    with pytest.raises(DataError, match="expected the file wiki.test.tokens or wiki"):
        wikitext_103.require_files(data, "validation", "test")
