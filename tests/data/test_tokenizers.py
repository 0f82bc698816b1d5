"""Tokenizers, their vocabularies, and how they are kept."""

import hashlib

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from common import downloads
from configs.imdb import get_config
from data import tokenizers
from data.datasets import imdb
from data.rows import DataError, Example
from data.tokenizers import word_pieces as vocabulary
from data.tokenizers.word_pieces import WordPieceTokenizer
from tests import loopback

PIECES = ["[PAD]", "[UNK]", "un", "##able", "a", "b", "##b", ",", "cafe"]


def ids(tokenizer, *texts):
    return tf.function(tokenizer)(tf.constant(list(texts))).to_list()


def test_the_longest_word_piece_is_taken():
    tokenizer = tokenizers.WordPieceTokenizer(PIECES)
    assert ids(tokenizer, "UNABLE, abb", "Caf\u00e9 xyz", "") == [
        [2, 3, 7, 4, 6, 6],
        [8, 1],
        [],
    ]


@pytest.fixture(scope="module")
def bytes_of():
    """Traced once."""
    signature = [tf.TensorSpec([None], tf.string)]
    return tf.function(tokenizers.ByteTokenizer(), input_signature=signature)


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5))
def test_bytes_are_kept(bytes_of, texts):
    found = bytes_of(tf.constant(texts)).to_list()
    assert [bytes(i - 1 for i in row) for row in found] == texts


def test_symbols_are_numbered_in_their_order():
    tokenizer = tokenizers.SymbolTokenizer(("0", "1", "[MAX", "]"))
    assert ids(tokenizer, "[MAX 1 0 ]", "1") == [[3, 2, 1, 4], [2]]
    assert tokenizer.vocabulary_size == 5


@pytest.mark.parametrize(
    "tokenizer",
    [
        tokenizers.WordPieceTokenizer(PIECES),
        tokenizers.ByteTokenizer(),
        tokenizers.SymbolTokenizer(("a", "b,")),
    ],
    ids=lambda tokenizer: type(tokenizer).__name__,
)
def test_saved_tokenizers_are_the_same(tokenizer, tmp_path):
    tokenizers.save(tokenizer, tmp_path / "tokenizer")
    twin = tokenizers.load(tmp_path / "tokenizer")
    assert twin.vocabulary_size == tokenizer.vocabulary_size
    assert twin.identity == tokenizer.identity
    assert ids(twin, "a b, unable") == ids(tokenizer, "a b, unable")


def test_no_saved_tokenizer(tmp_path):
    with pytest.raises(DataError, match="tokenizer.json: expected a saved tokenizer"):
        tokenizers.load(tmp_path)


def test_a_tokenizer_of_another_version(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"kind": "ByteTokenizer"}')
    message = "tokenizer.json: expected a tokenizer out of bytes, .*, found ByteTok"
    with pytest.raises(DataError, match=message):
        tokenizers.load(tmp_path)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", ":1: expected word pieces"),
        (b"a\nb\n", ":1: expected word pieces, one a line, \\[PAD\\] first"),
        (b"[PAD]\n[UNK]\na\na\n", ":4: expected a new piece, found 'a' again"),
        (b"[PAD]\na\n", ":2: expected the piece \\[UNK\\]"),
        (b"[PAD]\n[UNK]\n\xff\n", ":3: expected UTF-8"),
    ],
)
def test_a_bad_vocabulary_is_refused(tmp_path, content, message):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match="vocab.txt" + message):
        vocabulary.read(path)


def data_config(tmp_path, **changes):
    data = get_config().data
    data.update(cache_dir=str(tmp_path), **changes)
    return data


@pytest.mark.parametrize("pieces", [b"", b"fi\0\0\n"])
def test_word_pieces_of_no_use_are_refused(tmp_path, pieces):
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\n[UNK]\n" + pieces)
    config = data_config(tmp_path, vocab_file=str(path))
    with pytest.raises(DataError, match=f"{path}: expected word pieces that TensorFlo"):
        WordPieceTokenizer.make(config)


def test_vocabulary_trained_on_the_corpus_once(tmp_path, monkeypatch):
    texts = [b"the cat sat on the mat", b"the dog sat on the cat"] * 20
    monkeypatch.setattr(imdb, "identify", lambda *arguments: "corpus")
    monkeypatch.setattr(imdb, "read", lambda *arguments: [Example(x, 0) for x in texts])
    data = data_config(tmp_path, vocab="train", vocab_size=60)
    pieces = vocabulary.trained(data)
    assert pieces[0] == "[PAD]" and "the" in pieces and len(pieces) <= 60
    found = tokenizers.WordPieceTokenizer(pieces)
    assert 1 not in ids(found, "the dog sat")[0]
    monkeypatch.setattr(imdb, "read", None)
    assert vocabulary.trained(data) == pieces


def test_a_vocabulary_learned_without_bad_rows_is_for_those_who_skip_them(
    tmp_path, monkeypatch
):
    rows = [Example(b"the cat sat", 0)] * 20
    monkeypatch.setattr(imdb, "identify", lambda *arguments: "corpus")
    monkeypatch.setattr(imdb, "read", lambda *arguments: [*rows, DataError("bad")])
    data = data_config(tmp_path, vocab="train", vocab_size=60, on_error="skip")
    assert "the" in vocabulary.trained(data)
    data.on_error = "fail"
    with pytest.raises(DataError, match="bad"):
        vocabulary.trained(data)


def test_vocabulary_download_is_checked(tmp_path, monkeypatch):
    source = tmp_path / "served.txt"
    source.write_text("[PAD]\n[UNK]\n")
    monkeypatch.setattr(vocabulary, "BERT_URL", source.as_uri())
    data = data_config(tmp_path / "cache")
    refused = "--config.data.vocab=bert: expected to download .*, found file:"
    with pytest.raises(DataError, match=f"{refused}.*: another file, of SHA-256"):
        vocabulary.given(data)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    monkeypatch.setattr(vocabulary, "BERT_SHA256", digest)
    assert vocabulary.given(data) == ["[PAD]", "[UNK]"]
    source.unlink()
    assert vocabulary.given(data) == ["[PAD]", "[UNK]"]
    (tmp_path / "cache/bert-base-uncased/vocab.txt").write_text("[PAD]\ncut sh")
    with pytest.raises(DataError, match=refused):
        vocabulary.given(data)


def test_a_vocabulary_of_a_silent_server_is_not_waited_for(
    tmp_path, monkeypatch, caplog
):
    caplog.set_level("INFO", "transevolve")
    monkeypatch.setattr(downloads, "SILENCE_SECONDS", 1)
    with loopback.silence() as (url, was_asked):
        monkeypatch.setattr(vocabulary, "BERT_URL", url)
        with pytest.raises(DataError) as error:
            vocabulary.given(data_config(tmp_path))
        assert was_asked()
    assert caplog.messages == [f"downloading {url} to {tmp_path}/bert-base-uncased"]
    assert str(error.value) == (
        "--config.data.vocab=bert: expected to download the published word pieces, of "
        f"SHA-256 07eced37…, found {url}: no answer for 1 s. Instead you can give the "
        "file (--config.data.vocab_file=FILE), or learn word pieces "
        "(--config.data.vocab=train)"
    )


def test_the_published_vocabulary_is_read(shared):
    path = shared / "bert_base_uncased_vocab.txt"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest == vocabulary.BERT_SHA256
    pieces = vocabulary.read(path)
    tokenizer = tokenizers.WordPieceTokenizer(pieces)
    found = ids(tokenizer, "Unbelievably, it's caf\u00e9 time!")[0]
    assert [pieces[i] for i in found] == (
        [
            "un",
            "##bel",
            "##ie",
            "##va",
            "##bly",
            ",",
            "it",
            "'",
            "s",
            "cafe",
            "time",
            "!",
        ]
    )
