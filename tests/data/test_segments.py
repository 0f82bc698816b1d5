"""Segments of plain text: what is predicted, once, and what each row sees."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs import wikitext_103 as wikitext_103_config
from data import stream
from data.datasets import wikitext_103
from data.rows import DataError
from data.segments import SegmentData, Segments, Streams
from data.tokenizers import make_tokenizer
from tests import plain_text

END = 99


def text(count):
    return np.arange(1, count + 1, dtype=np.uint16)


def batches(dataset, count=None):
    taken = dataset if count is None else dataset.take(count)
    return [{name: x.numpy() for name, x in batch.items()} for batch in taken]


def joined(found, name):
    return np.concatenate([batch[name] for batch in found])


@settings(max_examples=20)
@given(
    count=st.integers(1, 40),
    length=st.integers(2, 9),
    rows=st.integers(1, 5),
    slides=st.booleans(),
)
def test_each_token_is_predicted_once_after_what_comes_before(
    count, length, rows, slides
):
    split = Segments(text(count), END, rows, length, slides=slides)
    found = batches(split.for_evaluation())
    assert len(found) == split.num_batches
    assert all(batch["inputs"].shape == (rows, length) for batch in found)
    inputs, targets = joined(found, "inputs"), joined(found, "targets")
    assert sorted(targets[targets != 0]) == list(text(count))
    # The input of a token is the one before it.
    real = targets != 0
    np.testing.assert_array_equal(
        inputs[real], np.where(targets[real] == 1, END, targets[real] - 1)
    )
    if slides:
        # With as many before it as the window holds.
        seen = np.sum(inputs != 0, axis=1)[:, None] * real
        assert (seen[real] == min(length, count)).all()


@settings(max_examples=20)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=9),
    length=st.integers(2, 9),
    rows=st.integers(1, 5),
    slides=st.booleans(),
)
def test_documents_that_are_apart_are_as_texts_of_their_own(
    lengths, length, rows, slides
):
    # Numbers of three digits: a document's, then a token's.
    documents = [
        np.array([*(100 * i + np.arange(1, n)), END], np.uint16)
        for i, n in enumerate(lengths, 1)
    ]
    tokens = np.concatenate(documents)
    split = Segments(tokens, END, rows, length, np.cumsum(lengths), slides)
    alone = [Segments(one, END, 1, length, slides=slides) for one in documents]
    expected = [batch for one in alone for batch in batches(one.for_evaluation())]
    assert split.num_examples == len(expected)
    found = batches(split.for_evaluation())
    for name in ("inputs", "targets"):
        actual = joined(found, name)
        np.testing.assert_array_equal(
            actual[: len(expected)], joined(expected, name), name
        )
        assert not actual[len(expected) :].any()


def test_streams_of_documents_have_each_segment_once_an_epoch():
    lengths = [5, 1, 7, 3, 4, 2]
    documents = [np.array([*range(1, n), END], np.uint16) for n in lengths]
    ends = np.cumsum(lengths)
    split = Streams(np.concatenate(documents), END, 2, 3, ends)
    found = batches(split.for_training(seed=0), split.num_batches)
    targets = np.stack([batch["targets"] for batch in found], axis=1)
    # Of ten segments each row has the next five.
    assert split.num_examples == 10
    np.testing.assert_array_equal(
        np.concatenate([row[row != 0] for row in targets]), np.concatenate(documents)
    )
    inputs = np.stack([batch["inputs"] for batch in found], axis=1)
    begins = inputs[..., 0] == END
    assert begins.sum() == len(lengths) and begins[0, 0]


def test_streams_go_on_row_by_row():
    split = Streams(text(26), END, 3, 3)  # streams of 8, two tokens left out
    found = batches(split.for_training(seed=0), 2 * split.num_batches)
    assert split.num_batches == 3
    inputs = np.concatenate([batch["inputs"] for batch in found[:3]], axis=1)
    targets = np.concatenate([batch["targets"] for batch in found[:3]], axis=1)
    np.testing.assert_array_equal(targets[:, 8:], 0)
    np.testing.assert_array_equal(targets[:, :8], text(24).reshape(3, 8))
    np.testing.assert_array_equal(inputs[:, 1:8], targets[:, :7])
    np.testing.assert_array_equal(inputs[:, 0], [END, 8, 16])
    # Each row goes on with the stream after its own.
    for first, second in zip(found[:3], found[3:], strict=True):
        following = np.roll(first["inputs"], -1, axis=0)
        np.testing.assert_array_equal(following, second["inputs"])


def test_a_run_that_goes_on_sees_what_it_would_have_seen():
    split = Streams(text(50), END, 2, 4)
    whole = batches(split.for_training(seed=0), 12)
    rest = batches(split.for_training(seed=0, first_batch=5), 7)
    for a, b in zip(whole[5:], rest, strict=True):
        np.testing.assert_array_equal(a["inputs"], b["inputs"])


def test_too_short_a_text_is_refused():
    with pytest.raises(
        DataError, match="for train.batch_size=8 rows, found 0 segments of 5 tokens"
    ):
        Streams(text(5), END, 8, 3)


@pytest.mark.parametrize("tokenizer", ["words", "bytes", "subwords"])
def test_lines_are_tokenized_once_and_closed(tokenizer, tmp_path, monkeypatch):
    seven = functools.partial(stream.TokenStream, chunk_size=7)
    monkeypatch.setattr(stream, "TokenStream", seven)
    plain_text.write(tmp_path)
    settings = {"data.tokenizer": tokenizer}
    if tokenizer == "subwords":
        settings |= {"data.vocab_size": 300}
    config = plain_text.config(tmp_path, **settings)
    made = make_tokenizer(config.data)
    split = SegmentData(config.data, made).text("validation")
    lines = (tmp_path / "valid.txt").read_text().splitlines()
    assert split.lines == len(lines) == np.sum(split.tokens == made.end)
    assert split.words == sum(len(line.split()) + 1 for line in lines)
    if tokenizer == "words":
        assert len(split.tokens) == split.words
    (tmp_path / "valid.txt").write_text("one\n\n  two three \n")
    blank = SegmentData(config.data, made).text("validation")
    assert (blank.lines, blank.words) == (3, 6)


def test_a_bad_line_is_named_or_skipped(tmp_path):
    plain_text.write(tmp_path)
    (tmp_path / "test.txt").write_bytes(b"one two\nthree \xff four\nfive\n")
    config = plain_text.config(tmp_path)
    tokenizer = make_tokenizer(config.data)
    with pytest.raises(DataError, match=r"test.txt:2: expected UTF-8 text, found .* 7"):
        SegmentData(config.data, tokenizer).text("test")
    config.data.on_error = "skip"
    assert SegmentData(config.data, tokenizer).text("test").lines == 2


def test_published_counts_of_wikitext_103(shared, tmp_path, monkeypatch):
    # Words of the validation text serve: that for training is not here.
    names = {**wikitext_103.FILES, "train": "wiki.valid.tokens"}
    monkeypatch.setattr(wikitext_103, "FILES", names)
    config = wikitext_103_config.get_config().data
    config.dir, config.cache_dir = str(shared / "wikitext-103"), str(tmp_path)
    config.vocab_size = 1000
    data = SegmentData(config, make_tokenizer(config))
    for split, count in (("validation", 217_646), ("test", 245_569)):
        text = data.text(split)
        assert len(text.tokens) == text.words == count
