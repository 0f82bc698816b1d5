"""Exports of small models on real data, where that is, and processes that load them."""

import gzip
import json
import shutil
import subprocess
import sys
import tarfile
from itertools import islice
from pathlib import Path

from configs import ag_news, char_imdb
from tests import classification, scripts, translation
from tests.conftest import SHARED

CLIENT = Path(__file__).with_name("client.py")
NUM_TEXTS = 24


class Client:
    """A process that has loaded an export."""

    def __init__(self, folder, modules):
        self.process = subprocess.Popen(
            # Isolated: neither this folder nor the environment lead to modules.
            [sys.executable, "-I", CLIENT, folder, *modules],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, signature, measured=False, **inputs):
        """What the export returns for texts or bytes; its memory if that is measured,
        which only Linux tells."""
        inputs = {name: _as_characters(texts) for name, texts in inputs.items()}
        self.process.stdin.write(json.dumps([signature, inputs, measured]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


def _as_characters(texts):
    if isinstance(texts, list):
        return [_as_characters(part) for part in texts]
    return (texts.encode() if isinstance(texts, str) else texts).decode("latin-1")


def config_of(task, variant, folder):
    """Of a small model, on a part of the real data, or made data where that is not."""
    return {
        "listops": scripts.listops_config,
        "char_imdb": _char_imdb,
        "ag_news": _ag_news,
        "multi30k": _multi30k,
    }[task](folder, variant)


def _char_imdb(folder, variant):
    if SHARED.is_dir():
        for split in ("train", "test"):
            for name in ("pos", "neg"):
                (folder / "aclImdb" / split / name).mkdir(parents=True)
        with tarfile.open(SHARED / "aclImdb_part.tar.gz") as archive:
            reviews = (file for file in archive if file.name.startswith("aclImdb/test"))
            for review in islice(reviews, 0, 2000, 2000 // NUM_TEXTS):
                archive.extract(review, folder, filter="data")
    else:
        classification.write_imdb(folder)
    return _classifier(char_imdb, folder, variant)


def _ag_news(folder, variant):
    if SHARED.is_dir():
        shutil.copy(SHARED / "bert_base_uncased_vocab.txt", folder / "vocab.txt")
        for name in ("train.csv", "test.csv"):
            _some_lines(SHARED / "ag_news_csv" / name, folder / name, NUM_TEXTS)
    else:
        (folder / "vocab.txt").write_text(classification.WORDS)
        classification.write_ag_news(folder)
    config = _classifier(ag_news, folder, variant)
    config.data.vocab_file = str(folder / "vocab.txt")
    return config


def _classifier(module, folder, variant):
    config = module.get_config(variant)
    config.update_from_flattened_dict(
        {
            **scripts.for_variant(classification.TINY, variant),
            "data.max_length": 96,
            "data.bucket_lengths": (32, 96),
            "data.source": "files",
            "data.dir": str(folder),
            "data.cache_dir": str(folder),
        }
    )
    return config


def _multi30k(folder, variant):
    if not SHARED.is_dir():
        translation.write(folder)
        return translation.config(folder, variant)
    for name in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de"):
            path = SHARED / "multi30k" / f"{name}.{language}.gz"
            count = 600 if name == "train" else NUM_TEXTS
            _some_lines(path, folder / path.stem, count)
    return translation.config(folder, variant, **{"data.vocab_size": 400})


def _some_lines(source, target, count):
    with (gzip.open if source.suffix == ".gz" else open)(source, "rb") as file:
        target.write_bytes(b"".join(islice(file, count)))
