"""WikiText-103: articles of Wikipedia, in words (Merity et al. 2017, 1609.07843)."""

import functools
import shutil
import zipfile
from pathlib import Path

from common.fields import choice
from data import files
from data.datasets import plain_text

KIND = "plain_text"
SPLITS = ("train", "validation", "test")
TOKENIZERS = plain_text.TOKENIZERS
FIELDS = {
    "source": choice(
        "The files wiki.{train,valid,test}.tokens, of data.dir or else downloaded.",
        "files",
    )
}
# Where its first author keeps what the paper's address had.
URL = "https://wikitext.smerity.com/wikitext-103-v1.zip"
SHA256 = "242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590"
FILES = {
    "train": "wiki.train.tokens",
    "validation": "wiki.valid.tokens",
    "test": "wiki.test.tokens",
}
LAYOUT = "the folder of wiki.*.tokens"


def _path(config, split) -> Path:
    if config.dir:
        root = files.data_path(config.dir, "WikiText-103", LAYOUT)
    else:
        root = _downloaded(config.cache_dir)
    return files.find(root, FILES[split], "a line of text")


@functools.cache  # Each look into a cached folder reads all of its 540 MB.
def _downloaded(cache_dir):
    return files.downloaded(
        cache_dir,
        "wikitext-103",
        "archive.zip",
        URL,
        SHA256,
        "--config.data.dir: expected a folder, or to download WikiText-103",
        f"give {LAYOUT} (--config.data.dir=FOLDER)",
        _unpack,
    )


def _unpack(archive):
    with zipfile.ZipFile(archive) as packed:
        for name in FILES.values():
            source = packed.open(f"wikitext-103/{name}")
            with source, archive.with_name(name).open("wb") as target:
                shutil.copyfileobj(source, target)
    archive.unlink()


read, identify, require_files = plain_text.functions_of(_path)
