"""A vocabulary may lie elsewhere when a run is taken up again, and be no other."""

import json

import pytest

from common.errors import UserError
from configs import imdb, multi30k
from data.tokenizers.subwords import SubwordTokenizer, learn
from data.tokenizers.word_pieces import WordPieceTokenizer
from reproduction import running, tables
from reproduction.experiment import Folder
from reproduction.scales import SCALES
from tests.conftest import SHARED
from tests.reproduction.made_data import make_data
from training import workdir as workdirs

VOCABULARY = SHARED / "bert_base_uncased_vocab.txt"
DATA = {"training": "a", "validation": "b"}
PIECES = ["[PAD]", "[UNK]", "a"]


def word_pieces(content):
    return "".join(piece + "\n" for piece in [*PIECES, content]).encode()


def subwords(content):
    return learn([content.encode() * 9, b"other words"], 300)


KINDS = {
    "wordpiece": (
        imdb,
        word_pieces,
        lambda model: WordPieceTokenizer(model.decode().split()),
    ),
    "subwords": (multi30k, subwords, SubwordTokenizer),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_elsewhere_is_taken_and_another_refused(kind, tmp_path, monkeypatch):
    module, make, tokenizer = KINDS[kind]
    old, new, other = (tmp_path / name for name in ("old", "new", "other"))
    old.write_bytes(make("film"))
    new.write_bytes(make("film"))
    other.write_bytes(make("news"))
    config = module.get_config()
    monkeypatch.chdir(tmp_path)
    config.data.vocab_file = "old"
    workdirs.keep(config, tokenizer(old.read_bytes()), DATA, tmp_path)
    kept = workdirs.read_config(tmp_path)
    assert kept.data.vocab_file == str(old)
    for same in (old, new):
        config.data.vocab_file = str(same)
        workdirs.check_same_run(config, kept, tmp_path)
    for file in (str(other), None):
        config.data.vocab_file = file
        message = f"another vocabulary than config.data.vocab_file={file}; give"
        with pytest.raises(UserError, match=message):
            workdirs.check_same_run(config, kept, tmp_path)
    old.write_bytes(make("news"))  # at the same place
    config.data.vocab_file = str(old)
    with pytest.raises(UserError, match="another vocabulary"):
        workdirs.check_same_run(config, kept, tmp_path)


@pytest.mark.skipif(not VOCABULARY.exists(), reason="the published list is not here")
def test_the_published_word_pieces_need_no_file(tmp_path):
    config = imdb.get_config()
    config.data.vocab_file = str(VOCABULARY)
    tokenizer = WordPieceTokenizer(VOCABULARY.read_text().splitlines())
    workdirs.keep(config, tokenizer, DATA, tmp_path)
    kept = workdirs.read_config(tmp_path)
    config.data.vocab_file = None  # the same list, downloaded
    workdirs.check_same_run(config, kept, tmp_path)
    config.data.vocab = "train"
    with pytest.raises(UserError, match="config.data.vocab="):
        workdirs.check_same_run(config, kept, tmp_path)


def test_a_run_is_finished_with_its_data_mounted_elsewhere(tmp_path):
    data, moved = make_data(tmp_path / "data"), tmp_path / "moved"
    one = tables.experiments(["3"], SCALES["smoke"])[0]
    workdir = tmp_path / "output/runs/smoke" / one.name
    workdir.mkdir(parents=True)
    config = Folder(tmp_path / "output", "smoke", data).config(one)
    pieces = (data / Folder.VOCABULARY).read_text().split()
    workdirs.keep(config, WordPieceTokenizer(pieces), DATA, workdir)
    (workdir / "results").mkdir()
    result = {"accuracy": 0.5, "loss": 1.0, "parameters": 10}
    (workdir / "results/test.json").write_text(json.dumps(result))
    (workdir / "facts.json").write_text(json.dumps({"finished": True}))
    data.rename(moved)
    assert running.is_done(one, Folder(tmp_path / "output", "smoke", moved))
    (moved / Folder.VOCABULARY).write_text(
        (moved / Folder.VOCABULARY).read_text() + "more\n"
    )
    with pytest.raises(UserError, match=r"--output: .* another vocabulary"):
        running.is_done(one, Folder(tmp_path / "output", "smoke", moved))
