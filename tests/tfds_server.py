"""What the servers of three TFDS datasets send, made small, and served here instead."""

import gzip
import hashlib
import importlib
import io
import re
import tarfile
from contextlib import contextmanager

from tests import loopback

AG_NEWS = "drive.google.com/uc?export=download&id=0Bz8a_Dbh9QhbUDNpeUdjb0wxRms"
AG_NEWS_FILE = "ag_news_csv.tar.gz"
IMDB = "ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
CONFIRMED = "drive.google.com/download?id=1&confirm=t"
CONFIRMATION = b"""<!DOCTYPE html><html><body><p>Google Drive can't scan this file.</p>
<form id="download-form" action="/drive.google.com/download" method="get">
<input type="submit" value="Download anyway"/>
<input type="hidden" name="id" value="1"><input type="hidden" name="confirm" value="t">
</form></body></html>"""
# As ("title", "description") of the class from 1, and a review of ("pos" or "neg").
NEWS = [(i % 4 + 1, f"News {i}", 'It ""fell""\\, again ' * (i + 1)) for i in range(12)]
REVIEWS = [(("neg", "pos")[i % 2], f"Film {i}.<br />\u00dcber! " * 2) for i in range(8)]
SEGMENTS = 5


def archive(files, mode="w:gz"):
    """A tar archive of {name: content}."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def ag_news_files():
    def csv(rows):
        return "".join(f'"{x}","{y}","{z}"\n' for x, y, z in rows).encode()

    files = {"train.csv": csv(NEWS), "test.csv": csv(NEWS[:4]), "readme.txt": b"AG"}
    return {f"ag_news_csv/{name}": content for name, content in files.items()}


def imdb_files():
    files = {"aclImdb/README": b"", "aclImdb/train/unsup/0_0.txt": b"Unlabelled."}
    for split, reviews in (("train", REVIEWS), ("test", REVIEWS[:4])):
        for number, (label, text) in enumerate(reviews):
            files[f"aclImdb/{split}/{label}/{number}_7.txt"] = text.encode()
    return files


def sentences(name, language):
    return [f"{name} {number} {language} \u00e9" for number in range(SEGMENTS)]


def plain(name, *languages):
    """{name.language: a sentence a line}"""
    texts = {x: "\n".join(sentences(name, x)) + "\n" for x in languages}
    return {f"{name}.{x}": text.encode() for x, text in texts.items()}


def wmt14_archives():
    """{URL: content} of everything that de-en and fr-en need."""
    europarl, crawl, news, dev = {}, {}, {}, {}
    for x in ("de", "fr"):
        pair = f"{x}-en"
        europarl |= plain(f"training/europarl-v7.{pair}", x, "en")
        crawl |= plain(f"commoncrawl.{pair}", x, "en")
        news |= plain(f"training/news-commentary-v9.{pair}", x, "en")
        dev |= plain("dev/newstest2013", x, "en")
        for kind, language in (("src", x), ("ref", "en")):
            lines = sentences(f"newstest2014 {pair}", language)
            segments = (f'<seg id="{i}">{s}</seg>' for i, s in enumerate(lines, 1))
            document = "\n".join(['<srcset setid="newstest2014">', *segments, ""])
            dev[f"dev/newstest2014-{x}en-{kind}.{language}.sgm"] = document.encode()
    giga = plain("giga-fren.release2.fixed", "fr", "en")
    giga = {f"{name}.gz": gzip.compress(text) for name, text in giga.items()}
    training = "www.statmt.org/wmt13/training-parallel"
    return {
        f"{training}-europarl-v7.tgz": archive(europarl),
        f"{training}-commoncrawl.tgz": archive(crawl),
        f"{training}-un.tgz": archive(plain("un/undoc.2000.fr-en", "fr", "en")),
        "www.statmt.org/wmt14/training-parallel-nc-v9.tgz": archive(news),
        "www.statmt.org/wmt10/training-giga-fren.tar": archive(giga, "w"),
        "data.statmt.org/wmt19/translation-task/dev.tgz": archive(dev),
    }


def send_ag_news(handler):
    """As Google Drive does: the name is not the URL's."""
    disposition = f'attachment; filename="{AG_NEWS_FILE}"'
    loopback.send(handler, CONTENTS[AG_NEWS], Content_Disposition=disposition)


CONTENTS = {
    AG_NEWS: archive(ag_news_files()),
    IMDB: archive(imdb_files()),
    **wmt14_archives(),
}


def redirect(monkeypatch, url):
    """Has the builders of TFDS download from a server here, and knows its checksums."""
    from tensorflow_datasets.core.download import checksums, downloader
    from tensorflow_datasets.core.utils import Size
    from tensorflow_datasets.translate import wmt

    for name, path in (("ag_news_subset", AG_NEWS), ("imdb_reviews", IMDB)):
        module = f"tensorflow_datasets.datasets.{name}.{name}_dataset_builder"
        module = importlib.import_module(module)
        monkeypatch.setattr(module, "_DOWNLOAD_URL", f"{url}/{path}")
    for dataset in wmt.DATASET_MAP.values():
        urls = [re.sub("^https?://", f"{url}/", x) for x in dataset._urls]
        monkeypatch.setattr(dataset, "_urls", urls)
    monkeypatch.setattr(downloader, "_DRIVE_URL", re.compile(f"^{url}/drive"))
    infos = {
        f"{url}/{path}": checksums.UrlInfo(
            Size(len(content)), hashlib.sha256(content).hexdigest(), None
        )
        for path, content in CONTENTS.items()
    }
    monkeypatch.setattr(checksums, "get_all_url_infos", lambda: dict(infos))


@contextmanager
def serving(monkeypatch, **answers):
    """Serves all of it; the URL and the list of what was asked for."""
    with loopback.serving({**CONTENTS, AG_NEWS: send_ag_news, **answers}) as server:
        redirect(monkeypatch, server[0])
        yield server
