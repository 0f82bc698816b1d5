"""Words: the frequent ones, the unknown, and back."""

import pytest
import tensorflow as tf

from data import tokenizers
from data.rows import DataError
from data.tokenizers.words import RESERVED, UNKNOWN, WordTokenizer
from tests import plain_text


@pytest.fixture
def config(tmp_path):
    plain_text.write(tmp_path)
    (tmp_path / "train.txt").write_text("b a  b\tc\nb c <unk>\n\nd c <eos>\n")
    return plain_text.config(tmp_path, **{"data.vocab_size": 6}).data


def test_the_most_frequent_are_kept_in_order(config):
    assert tokenizers.make_tokenizer(config).vocabulary == [*RESERVED, "b", "c", "a"]


def test_others_are_unknown(config):
    ids = tokenizers.make_tokenizer(config)(tf.constant(["b d  c ", "", "<unk> <eos>"]))
    assert ids.to_list() == [[3, UNKNOWN, 4], [], [UNKNOWN, UNKNOWN]]


def test_texts_come_back(config):
    words = tokenizers.make_tokenizer(config)
    assert words.decode(words(tf.constant(["c  a b", ""]))).numpy().tolist() == [
        b"c a b",
        b"",
    ]


def test_it_is_saved(config, tmp_path):
    made = tokenizers.make_tokenizer(config)
    tokenizers.save(made, tmp_path / "saved")
    loaded = tokenizers.load(tmp_path / "saved")
    assert isinstance(loaded, WordTokenizer) and loaded.identity == made.identity


def test_a_text_without_words_is_refused(config, tmp_path):
    (tmp_path / "train.txt").write_text("\n \n")
    with pytest.raises(DataError, match="train: expected words, found none"):
        tokenizers.make_tokenizer(config)


def test_a_missing_file_is_named(config, tmp_path):
    (tmp_path / "valid.txt").unlink()
    with pytest.raises(DataError, match="expected the file valid.txt or valid.txt.gz"):
        tokenizers.make_tokenizer(config)
