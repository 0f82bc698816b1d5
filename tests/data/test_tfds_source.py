"""TFDS: its real builders, from a server on this machine, without one, and prepared."""

import importlib
import json
import os
import re
import signal
import socket
import sys
import time
from collections import Counter
from functools import partial

import pytest

from common import downloads
from configs import ag_news as ag_news_config
from configs import imdb as imdb_config
from configs import wmt14_en_de, wmt14_en_fr
from data import DATASETS, tfds_source
from data.datasets import parallel_text
from data.rows import DataError, Example, Pair
from tests import forked, loopback, tfds_server
from tests.classification import TINY, WORDS

CONFIGS = [ag_news_config, imdb_config, wmt14_en_de, wmt14_en_fr]
WMT14_TRAINING = {
    "de": ["training/europarl-v7", "commoncrawl", "training/news-commentary-v9"],
    "fr": ["un/undoc.2000", "giga-fren.release2.fixed"],
}
WMT14_TRAINING["fr"] += WMT14_TRAINING["de"]


def read(config, folder, split):
    data = config.get_config().data
    data.dir = str(folder)
    return list(DATASETS[data.dataset].read(data, split))


def news(rows):
    texts = [f"{title} {text}".replace('""', '"') for _, title, text in rows]
    return [
        Example(x.encode(), label - 1)
        for x, (label, *_) in zip(texts, rows, strict=True)
    ]


def reviews(rows):
    return [Example(text.strip().encode(), label == "pos") for label, text in rows]


def translations(language, split):
    names = {
        "train": WMT14_TRAINING[language],
        "validation": ["dev/newstest2013"],
        "test": [f"newstest2014 {language}-en"],
    }[split]
    pairs = []
    for name in names:
        if split == "train" and not name.startswith("giga"):
            name = f"{name}.{language}-en"
        sides = (tfds_server.sentences(name, x) for x in ("en", language))
        pairs += [Pair(x.encode(), y.encode()) for x, y in zip(*sides, strict=True)]
    return pairs


def expected_rows(config, split):
    if config is ag_news_config:
        return news(tfds_server.NEWS if split == "train" else tfds_server.NEWS[:4])
    if config is imdb_config:
        return reviews(
            tfds_server.REVIEWS if split == "train" else tfds_server.REVIEWS[:4]
        )
    return translations(config.get_config().data.target_language, split)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The folder where TFDS has prepared everything, and what it has asked for."""
    folder = tmp_path_factory.mktemp("prepared")
    context = pytest.MonkeyPatch.context
    with context() as patch, tfds_server.serving(patch) as (_, asked):
        for config in CONFIGS:
            read(config, folder, "train")
    return folder, asked


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*arguments, **keywords):
        raise AssertionError("an access to the network")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.parametrize("config", CONFIGS)
def test_real_builders_give_what_the_archives_hold(config, prepared, no_network):
    """Each file is downloaded once. Later on no network is asked for anything."""
    folder, asked = prepared
    assert sorted(asked) == sorted(tfds_server.CONTENTS)
    data = config.get_config().data
    data.dir = str(folder)
    module = DATASETS[data.dataset]
    for split in module.SPLITS:
        rows = list(module.read(data, split))
        assert Counter(rows) == Counter(expected_rows(config, split))
        assert list(module.read(data, split)) == rows
        name, place = module.identify(data, split)
        assert place == f"{folder}/{name}"
        if module.KIND == "parallel_text":
            assert module.fingerprint(data, split) == (name, len(rows))


def test_names_and_languages_that_tfds_does_not_have(prepared):
    folder, _ = prepared
    data = wmt14_en_de.get_config().data
    data.update(dir=str(folder), target_language="it")
    with pytest.raises(DataError, match="expected the languages en and it, found"):
        list(parallel_text.read(data, "train"))
    data.tfds_name = "wmt99/de-en"
    for function in (parallel_text.identify, parallel_text.fingerprint):
        with pytest.raises(DataError, match="source=tfds: expected .* wmt99/de-en"):
            function(data, "train")
    data.tfds_name = None
    with pytest.raises(DataError, match="--config.data.tfds_name: expected the name"):
        list(parallel_text.read(data, "train"))


def test_data_is_prepared_before_it_is_counted(tmp_path, monkeypatch, caplog, capsys):
    """And its downloads are announced and shown."""
    caplog.set_level("INFO", "transevolve")
    data = wmt14_en_fr.get_config().data
    data.dir = str(tmp_path)
    with tfds_server.serving(monkeypatch) as (url, _):
        fingerprint = parallel_text.fingerprint(data, "test")
    assert fingerprint == ("wmt14_translate/fr-en/1.0.0", tfds_server.SEGMENTS)
    lines = [x.message for x in caplog.records if x.name == "transevolve"]
    size = len(tfds_server.CONTENTS["www.statmt.org/wmt13/training-parallel-un.tgz"])
    assert (
        f"wmt14_translate/fr-en: downloading {url}/www.statmt.org/wmt13/"
        f"training-parallel-un.tgz ({size} bytes) to {tmp_path}/downloads"
    ) in lines
    assert len(lines) == 7
    assert lines[-1].endswith(f"prepared in {tmp_path}/wmt14_translate/fr-en/1.0.0")
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("downloading: 100%") == 6


def test_the_file_behind_a_page_of_google_drive(tmp_path, monkeypatch):
    """Which TFDS reads with a package that it does not ask for."""
    pages = {
        tfds_server.AG_NEWS: tfds_server.CONFIRMATION,
        tfds_server.CONFIRMED: tfds_server.send_ag_news,
    }
    with tfds_server.serving(monkeypatch, **pages) as (_, asked):
        rows = read(ag_news_config, tmp_path, "test")
    assert Counter(rows) == Counter(expected_rows(ag_news_config, "test"))
    assert asked == list(pages)


def failure(monkeypatch, folder, config=imdb_config, **answers):
    with tfds_server.serving(monkeypatch, **answers):
        return failure_of(config, folder)


def failure_of(config, folder):
    with pytest.raises(DataError) as error:
        read(config, folder, "train")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_failed_download_is_named_with_what_to_do(tmp_path, monkeypatch):
    refused = loopback.closed()
    tfds_server.redirect(monkeypatch, refused)
    assert failure_of(imdb_config, tmp_path) == (
        "--config.data.source=tfds: expected TensorFlow Datasets to load imdb_reviews, "
        f"found DownloadError: {refused}/{tfds_server.IMDB}: Connection refused"
        + tfds_source.INSTEAD
    )
    found = failure(monkeypatch, tmp_path, **{tfds_server.IMDB: None})
    assert found.endswith(f"{tfds_server.IMDB}. HTTP code: 404{tfds_source.INSTEAD}")
    found = failure(monkeypatch, tmp_path, **{tfds_server.IMDB: b"Sign in first."})
    assert f"{tfds_server.IMDB}, downloaded to " in found
    assert "has wrong checksum" in found and "size=14 bytes" in found
    assert found.endswith(tfds_source.INSTEAD)


def test_a_missing_package_is_no_network_problem(tmp_path, monkeypatch):
    import tensorflow_datasets as tfds

    monkeypatch.setitem(sys.modules, "importlib_resources", None)
    monkeypatch.setattr(
        tfds, "builder", lambda *_, **__: importlib.import_module("importlib_resources")
    )
    assert failure_of(imdb_config, tmp_path) == (
        "--config.data.source=tfds: expected the packages that TensorFlow Datasets "
        "needs, found import of importlib_resources halted; None in sys.modules. "
        "Install those of requirements.txt"
    )


def test_a_silent_server_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "SILENCE_SECONDS", 1)
    start = time.monotonic()
    with loopback.silence() as (url, was_asked):
        tfds_server.redirect(monkeypatch, url)
        found = failure_of(imdb_config, tmp_path)
        assert was_asked()
    assert time.monotonic() - start < 10
    assert f"{tfds_server.IMDB}: no answer for 1 s. Instead " in found


def test_a_slow_server_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "SILENCE_SECONDS", 2)
    content = tfds_server.CONTENTS[tfds_server.IMDB]
    slow = partial(loopback.send, content=content, seconds=0.5)
    with tfds_server.serving(monkeypatch, **{tfds_server.IMDB: slow}):
        assert len(read(imdb_config, tmp_path, "train")) == len(tfds_server.REVIEWS)


def train(folder, task, environment, vocab_file="words.txt"):
    """Starts train.py with a few settings; its process."""
    flags = {**TINY, "data.cache_dir": folder / "cache"}
    if vocab_file:
        flags["data.vocab_file"] = folder / vocab_file
        flags["data.vocab_file"].write_text(WORDS)
    arguments = [
        f"--config=configs/{task}.py:transevolve-fullff-1",
        f"--workdir={folder / 'run'}",
        *(f"--config.{name}={value}" for name, value in flags.items()),
    ]
    return forked.start("train.py", arguments, folder, environment=environment)


def wait_for(process, file, text):
    while not file.exists() or text not in file.read_text():
        assert process.is_alive()
        time.sleep(0.1)


def last_line(process, folder, seconds):
    process.join(seconds)
    assert process.exitcode is not None, "it still runs"
    text = (folder / "stderr").read_text()
    assert "Traceback" not in text
    return text.splitlines()[-1]


@pytest.mark.script
def test_training_from_a_prepared_folder_asks_for_no_network(tmp_path, prepared):
    folder, _ = prepared
    with loopback.silence() as (url, was_asked):
        environment = {"http_proxy": url, "https_proxy": url}
        environment["TFDS_DATA_DIR"] = str(folder)
        process = train(tmp_path, "ag_news", environment)
        line = last_line(process, tmp_path, 120)
        assert not was_asked()
    assert process.exitcode == 0, line
    assert json.loads((tmp_path / "stdout").read_text())["step"] == 5


@pytest.mark.script
def test_training_without_network_ends_soon_with_what_to_do(tmp_path):
    environment = {"https_proxy": loopback.closed(), "HOME": str(tmp_path)}
    process = train(tmp_path, "ag_news", environment)
    found = last_line(process, tmp_path, 60)
    url = f"https://{tfds_server.AG_NEWS}"
    assert found == (
        "error: --config.data.source=tfds: expected TensorFlow Datasets to load "
        f"ag_news_subset, found DownloadError: {url}: Connection refused"
        + tfds_source.INSTEAD
    )
    line = (
        f"ag_news_subset: downloading {url} (11.24 MiB) to "
        f"{tmp_path}/tensorflow_datasets/downloads"
    )
    # On a line of its own, not behind a bar.
    assert line in re.split(r"[\r\n]", (tmp_path / "stderr").read_text())
    assert process.exitcode == 1


@pytest.mark.long
@pytest.mark.parametrize("vocab_file", ["words.txt", None])
def test_training_on_a_network_without_answers_ends_soon(tmp_path, vocab_file):
    with loopback.silence() as (url, _):
        environment = {"https_proxy": url, "HOME": str(tmp_path)}
        process = train(tmp_path, "ag_news", environment, vocab_file)
        wait_for(process, tmp_path / "stderr", "downloading http")
        start = time.monotonic()
        found = last_line(process, tmp_path, 60)
        assert time.monotonic() - start < 22
    assert "no answer for 15 s. Instead you can give " in found


@pytest.mark.script
def test_an_interruption_ends_a_download(tmp_path):
    url = f"http://{tfds_server.IMDB}"
    endless = partial(loopback.send, content=bytes(10**7), seconds=0.1, parts=1000)
    with loopback.serving({url: endless}) as (proxy, asked):
        environment = {"http_proxy": proxy, "HOME": str(tmp_path)}
        process = train(tmp_path, "imdb", environment)
        wait_for(process, tmp_path / "stderr", "downloading: ")
        os.kill(process.pid, signal.SIGINT)
        assert last_line(process, tmp_path, 10) == "stopped"
    assert asked == [url]
