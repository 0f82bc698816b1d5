"""Recall: what is drawn, what is kept, and that a model learns it."""

import numpy as np
import pytest

import models
from reproduction import recall
from tests.models.builders import numpy

SIZE, LENGTH, BATCH = 200, 64, 40


def test_each_query_is_a_key_of_the_pairs():
    tokens, places, values = map(numpy, recall.sequences(LENGTH, 4, SIZE, BATCH, 0))
    assert tokens.shape == (BATCH, LENGTH) and tokens.min() > 0 and tokens.max() < SIZE
    keys, given = tokens[:, 0:8:2], tokens[:, 1:8:2]
    assert keys.max() < SIZE // 2 <= given.min()
    np.testing.assert_array_equal(given, values)
    np.testing.assert_array_equal(np.take_along_axis(tokens, places, axis=1), keys)
    assert places.min() >= 8
    for row in (*keys, *given, *places):
        assert len(set(row)) == 4


def test_most_queries_come_soon():
    _, places, _ = recall.sequences(256, 16, SIZE, 500, 0)
    gaps = (numpy(places) - 32) // 2
    # Of 112 places by 1/x^0.99, without replacement.
    assert (gaps < 28).mean() > 0.5 and (gaps >= 84).mean() > 0.05


def test_no_two_batches_are_alike():
    first, second = (numpy(recall.sequences(LENGTH, 4, SIZE, 5, i)[0]) for i in (0, 1))
    assert (first != second).any(axis=1).all()


def test_the_value_of_each_query_is_asked_for():
    model = recall.build("transformer", 16, SIZE, LENGTH)
    tokens, places, values = recall.sequences(LENGTH, 4, SIZE, 3, 0)
    losses, right = map(numpy, recall.recalled(model, tokens, places, values))
    places, values = map(numpy, (places, values))
    logits = model.embedding.logits(recall.encoded(model, tokens))
    logits = np.float64(numpy(logits))
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    for row, query in np.ndindex(3, 4):
        at = log_probs[row, places[row, query]]
        assert losses[row, query] == pytest.approx(-at[values[row, query]], rel=1e-4)
        assert bool(right[row, query]) == (at.argmax() == values[row, query])


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(recall, "train", lambda *_: iter([0.5, 0.25]))
    names = ["transformer", "transformer-linear", "transevolve-fullff-1-linear"]
    return [
        recall.row(name, length, 4, 16, SIZE, (0.01, 0.1), 300)
        for name in names
        for length in (32, 64)
    ]


def test_bytes_grow_with_a_text_only_where_slots_are_kept(measured):
    found = {(row["model"], row["length"]): row["state_bytes"] for row in measured}
    # Keys and values of two layers, four bytes a number.
    assert found["transformer", 64] == 2 * found["transformer", 32] == 64 * 64 * 4
    for name in ("transformer-linear", "transevolve-fullff-1-linear"):
        assert found[name, 64] == found[name, 32] > 2 * 16 * 16 * 4
    assert {row["accuracy"] for row in measured} == {0.5}
    assert {row["steps"] for row in measured} == {250}


def test_a_token_comes_with_the_one_before_it_alone():
    model = recall.build("transformer-local", 16, SIZE, 4)  # a window of one
    first = numpy(recall.encoded(model, np.array([[5, 6, 7, 8]])))
    second = numpy(recall.encoded(model, np.array([[9, 6, 7, 8]])))
    np.testing.assert_array_equal(first[0, 2:], second[0, 2:])
    assert (first[0, :2] != second[0, :2]).any(axis=1).all()


def test_every_attention_that_can_show_it_is_trained():
    for model in recall.MODELS:
        able = {
            name.removeprefix(model)
            for name in models.variants()
            if name == model or name.startswith(f"{model}-")
            if models.can_model_language(models.variant_config(name))
        }
        left_out = {suffix for suffix in able if "synthesizer" in suffix}
        left_out |= {"-talking-heads", "-delta-tanh", "-literal"}
        assert set(recall.ATTENTIONS) == able - left_out


def test_a_window_keeps_a_quarter_of_a_text():
    kept = {}
    for suffix in ("", "-local"):
        model = recall.build(f"transevolve-fullff-1{suffix}", 16, SIZE, LENGTH)
        kept[suffix] = recall.bytes_kept(model, LENGTH)
    assert kept["-local"] == kept[""] / 4


def test_what_recalls_all_is_trained_no_further(monkeypatch):
    tried = []

    def train(model, rate, *_):
        tried.append(rate)
        yield from [0.3, 1.0, 0.4]

    monkeypatch.setattr(recall, "train", train)
    row = recall.row("transformer", 16, 2, 4, 16, (0.1, 0.2), 5000)
    assert tried == [row["learning_rate"]] == [0.1]
    assert row["accuracy"] == 1 and row["steps"] == 2 * recall.EVERY


@pytest.mark.long
@pytest.mark.parametrize("name", recall.MODELS)
def test_a_model_learns_it(name):
    row = recall.row(name, 32, 4, 16, 64, (0.01,), 2000)
    assert row["accuracy"] >= recall.SOLVED and row["steps"] < 2000
