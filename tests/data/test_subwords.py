"""Subwords: text comes back as it was, vocabularies are learned, read and kept."""

import random
import re

import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from configs.multi30k import get_config
from data import tokenizers
from data.datasets import parallel_text
from data.rows import DataError
from data.tokenizers import subwords
from data.tokenizers.subwords import END, PADDING, START, UNKNOWN, SubwordTokenizer

ALPHABET = "abcdeQ.,'-<>/\u00e4\u00df\u00e9\u00a0\u2028\u4e2d\U0001f389"


def corpus(count=300, seed=0):
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        words = ["".join(draw.choices(ALPHABET, k=draw.randint(1, 6))) for _ in "123"]
        lines.append((" " * draw.randint(1, 2)).join(words))
    return [line.encode() for line in lines]


@pytest.fixture(scope="module")
def tokenizer():
    return SubwordTokenizer(subwords.learn(corpus(), 400))


@pytest.fixture(scope="module")
def round_trip(tokenizer):
    return traced(tokenizer)


def traced(tokenizer):
    """A function from texts to their ids and the texts decoded from them."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def both(texts):
        ids = tokenizer(texts)
        return ids, tokenizer.decode(ids)

    def round_trip(texts):
        ids, found = both(tf.constant(texts))
        return ids.to_list(), [text.decode() for text in found.numpy()]

    return round_trip


@given(st.lists(st.text(ALPHABET + "  ", max_size=20), min_size=1, max_size=5))
@example(["", " ", "   ", "  a", "a  ", " a  b "])
def test_text_of_the_alphabet_comes_back(round_trip, texts):
    ids, found = round_trip(texts)
    assert found == texts
    assert all(i > END for row in ids for i in row)


@given(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\u2581"),
        max_size=20,
    )
)
@example("<s> </s> <pad> <unk> <0x41>")
@example("\0\t\r \u2585 \u2047 \ufeff e\u0301 \u3000")
def test_so_does_any_other_text(round_trip, text):
    assert round_trip([text])[1] == [text]


def test_only_the_mark_of_a_space_becomes_a_space(round_trip):
    assert round_trip(["a\u2581b"])[1] == ["a b"]


def test_special_ids_are_decoded_to_nothing(tokenizer, round_trip):
    assert (PADDING, UNKNOWN, START, END) == (0, 1, 2, 3)
    assert tokenizer.vocabulary_size == 400
    (row,), _ = round_trip(["ab cd"])
    marked = tf.ragged.constant([[START, *row, END, PADDING], [END], []])
    assert tokenizer.decode(marked).numpy().tolist() == [b"ab cd", b"", b""]
    padded = tf.constant([[*row, END, PADDING, UNKNOWN]])
    assert tokenizer.decode(padded).numpy().tolist() == [b"ab cd"]


def test_half_a_character_is_replaced(tokenizer):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    ids = [processor.piece_to_id(piece) for piece in ("\u2581", "<0xC3>", "a")]
    assert tokenizer.decode(tf.constant([ids]))[0].numpy().decode() == "\ufffda"


def test_seeding_leaves_the_tokenizer_alone(tokenizer):
    before = tokenizer(tf.constant(["ab cd"]))
    tf.random.set_seed(1)
    after = tokenizer(tf.constant(["ab cd"]))
    assert after.to_list() == before.to_list()


def test_saved_tokenizer_is_the_same(tokenizer, round_trip, tmp_path):
    tokenizers.save(tokenizer, tmp_path / "tokenizer")
    assert (tmp_path / "tokenizer/subwords.model").exists()
    twin = tokenizers.load(tmp_path / "tokenizer")
    assert twin.identity == tokenizer.identity
    assert twin.vocabulary_size == tokenizer.vocabulary_size
    assert traced(twin)(["ab cd"]) == round_trip(["ab cd"])


def test_learning_is_deterministic_and_shows_how_far_it_is(capfd):
    models = [subwords.learn(corpus(), 350) for _ in range(2)]
    assert models[0] == models[1]
    error = capfd.readouterr().err
    assert "learning subwords from 300 sentences: 100%" in error and "350/350" in error
    assert models[0] != subwords.learn(corpus(seed=1), 350)


@pytest.mark.parametrize("size, bound", [(100_000, "<= "), (100, "100 vs ")])
def test_impossible_vocabulary_sizes(size, bound, capfd):
    with pytest.raises(DataError, match=f"vocab_size={size}: expected") as error:
        subwords.learn(corpus(), size)
    captured = capfd.readouterr()
    assert captured.out == "" and "LOG(" not in captured.err
    assert "\n" not in str(error.value)
    # SentencePiece says what is possible.
    possible = int(re.search(rf"{bound}(\d+)", str(error.value))[1])
    assert str(error.value).endswith(f"; --config.data.vocab_size={possible} would do")
    assert subwords.learn(corpus(), possible)


def test_no_text_to_learn_from():
    with pytest.raises(DataError, match="expected sentences .* found none"):
        subwords.learn([], 300)


def test_sentences_that_sentencepiece_leaves_out_are_counted(caplog):
    long, longest = b"a" * (subwords.LONGEST + 1), b"b " * 2096
    model = subwords.learn([*corpus(), longest], 400)
    assert caplog.text == ""
    others = [long, long, "a \u2585".encode()]
    assert subwords.learn([*corpus(), longest, *others], 400) == model
    message = "without 3 of 304 sentences with more than 4,192 bytes or with U+2585"
    assert message in caplog.text
    with pytest.raises(
        DataError, match="found 2 of 2 sentences with more than 4,192 b"
    ):
        subwords.learn([long, long], 400)


def test_sample_is_even_and_repeats():
    sentences = [b"%d" % number for number in range(200)]
    assert subwords.sample(sentences, 500, 0) == sentences
    chosen = subwords.sample(iter(sentences), 50, 0)
    assert len(set(chosen)) == 50
    assert subwords.sample(iter(sentences), 50, 0) == chosen
    drawn = [subwords.sample(sentences, 50, seed) for seed in range(200)]
    for start in range(0, 200, 50):
        expected = set(sentences[start : start + 50])
        count = sum(len(expected.intersection(sample)) for sample in drawn)
        assert 0.23 < count / 10_000 < 0.27


def config(tmp_path, **changes):
    for language in ("en", "de"):
        lines = corpus(seed=len(language))
        (tmp_path / f"train.{language}").write_bytes(b"\n".join(lines))
    data = get_config().data
    data.update(dir=str(tmp_path), cache_dir=str(tmp_path / "cache"), vocab_size=400)
    data.update(changes)
    return data


def test_vocabulary_is_learned_once(tmp_path, monkeypatch):
    data = config(tmp_path)
    model = subwords.trained(data)

    def unexpected(*arguments):
        raise AssertionError("read again")

    monkeypatch.setattr(parallel_text, "read", unexpected)
    assert subwords.trained(data) == model
    for change in ({"vocab_size": 401}, {"vocab_sentences": 100}):
        with pytest.raises(AssertionError, match="read again"):
            subwords.trained(config(tmp_path, **change))


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "found no such file"),
        (b"", "found an empty file"),
        (b"[PAD]\n[UNK]\n", "expected a SentencePiece model, found another file"),
        ("other ids", r"the ids \(0, 1, 2, 3\) of .*, found \(-1, 0, 1, 2\)"),
    ],
)
def test_bad_vocabulary_file(tmp_path, content, message):
    path = tmp_path / "other.model"
    if content == "other ids":
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus()),
            model_prefix=str(path.with_suffix("")),
            model_type="bpe",
            vocab_size=100,
            minloglevel=2,
        )
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match="other.model.*" + message):
        subwords.given(config(tmp_path, vocab_file=str(path)))


def test_a_vocabulary_file_is_taken_as_it_is(tokenizer, tmp_path):
    (tmp_path / "my.model").write_bytes(tokenizer.model)
    data = config(tmp_path, vocab_file=str(tmp_path / "my.model"))
    assert subwords.given(data) == tokenizer.model


def test_every_real_training_line_comes_back(multi30k):
    data, tokenizer = multi30k
    assert tokenizer.vocabulary_size == 8000
    pairs = parallel_text.read(data, "train")
    lines = [text for pair in pairs for text in pair]
    found = tokenizer.decode(tokenizer(tf.constant(lines))).numpy().tolist()
    assert found == lines
