"""Retrieval: what is drawn, what is asked for, and that a memory learns it."""

import numpy as np
import pytest
import tensorflow as tf

from configs.published import RETRIEVAL, RETRIEVAL_SYMBOLS
from reproduction import retrieval
from reproduction.drawn_updates import drawn_updates
from reproduction.retrieval import MEMORIES, Retrieval, loss, sequences
from tests.models.builders import numpy

EACH = pytest.mark.parametrize(
    "memory", [memory for named in MEMORIES.values() for memory in named.values()]
)


def test_keys_and_values_come_once_in_setting_1():
    for drawn in sequences(1, 20, 5, True, [1, 0]):
        assert (np.sort(drawn) == np.arange(20)).all()


def test_they_come_again_in_setting_2():
    for training, length in ((True, 40), (False, 20)):
        for drawn in sequences(2, 20, 5, training, [1, 0]):
            assert drawn.shape == (5, length)
            assert numpy(drawn).min() >= 0 and numpy(drawn).max() < 20
            assert len(np.unique(drawn[0])) < 20


def test_no_two_batches_are_alike():
    first, second = (sequences(1, 20, 5, True, [1, step])[0] for step in (0, 1))
    assert (numpy(first) != numpy(second)).any()


@EACH
def test_a_query_does_not_depend_on_others(memory):
    model = Retrieval(memory, 6)
    keys, values = sequences(2, 6, 3, True, [1, 0])
    queries = tf.constant([[0, 3, 5, 1]] * 3)
    together = numpy(model(keys, values, queries))
    alone = numpy(model(keys, values, queries[:, 2:3]))
    # Unnormalised, what is read may be thousands.
    np.testing.assert_allclose(together[:, 2:3], alone, rtol=1e-4, atol=1e-5)
    assert np.abs(together[:, 0] - together[:, 1]).max() > 1e-4


def test_a_sum_reads_what_the_definition_does():
    model = Retrieval(MEMORIES[1]["linear"], 6)
    keys, values = (numpy(x) for x in sequences(1, 6, 3, True, [1, 0]))
    embedding, one_hot = numpy(model.embedding), np.eye(6)
    pairs = np.concatenate([one_hot[values], embedding[keys]], axis=-1)

    def features(x, projection):
        kernel, bias = map(numpy, projection)
        x = x @ kernel + bias
        return np.where(x > 0, x + 1, np.exp(x))

    weights = features(embedding[keys], model.query) @ np.swapaxes(
        features(pairs, model.key), 1, 2
    )
    weights /= weights.sum(-1, keepdims=True)
    found = numpy(model(keys, values, keys))
    np.testing.assert_allclose(found, weights @ one_hot[values], rtol=1e-4, atol=1e-5)


def test_first_projections_are_the_authors():
    for name, largest in (
        ("linear", 64**-0.5),
        ("softmax", (6 / (6 + 13 + 64)) ** 0.5),
    ):
        model = Retrieval(MEMORIES[1][name], 6)
        (kernel, bias), (strengths, _) = model.key, model.strength
        for weight, bound in (
            (kernel, largest),
            (bias, 19**-0.5),
            (strengths, 19**-0.5),
        ):
            assert 0.8 * bound < np.abs(numpy(weight)).max() <= bound


class Fixed:
    """A model that answers the value 2 to every key."""

    symbols = 4

    def __call__(self, keys, values, queries, training):
        return tf.one_hot(tf.fill(queries.shape, 2), self.symbols)


def test_the_latest_value_is_asked_for():
    keys, values = tf.constant([[1, 0, 1]]), tf.constant([[3, 2, 1]])
    errors, real = loss(Fixed(), keys, values, tf.constant([[0, 1, 2]]))
    # Of key 0 that is right; of key 1 it is 1; key 2 has none.
    np.testing.assert_array_equal(numpy(errors)[0, :2], [0, 1])
    np.testing.assert_array_equal(real, [[True, True, False]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting, name",
    [(1, "dpfp-1"), pytest.param(2, "dpfp-2-delta", marks=pytest.mark.long)],
)
def test_a_memory_learns_what_it_can_hold(setting, name):
    row = retrieval.row(setting, name, 6)
    assert row["loss"] < retrieval.SOLVED and row["steps"] < 3000
    assert row["published"] is None


def test_a_loss_that_was_never_finite_is_none(monkeypatch):
    monkeypatch.setattr(
        retrieval, "drawn_updates", lambda *_, **__: lambda first, end: None
    )
    monkeypatch.setattr(
        retrieval, "loss", lambda *_: (tf.constant([[np.nan]]), tf.constant([[True]]))
    )
    row = retrieval.train(MEMORIES[1]["linear"], 1, 3)
    assert row == {"loss": None, "steps": retrieval.EVALUATE_EVERY}


def test_compiled_updates_are_those_that_are_not():
    def weights(count, jit_compile=False):
        model = Retrieval(MEMORIES[2]["dpfp-1-bounded"], 3)

        def draw(step):
            keys, values = sequences(2, 3, 4, True, [1, step])
            return keys, values, keys[:, -1:]

        if count:
            drawn_updates(model, 1e-3, loss, draw, jit_compile)(0, count)
        return [numpy(weight) for weight in model.trainable_weights]

    first, plain, compiled = weights(0), weights(5), weights(5, jit_compile=True)
    for before, one, other in zip(first, plain, compiled, strict=True):
        assert np.abs(one - before).max() > 1e-4
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-5)


def authors_features(x, memory):
    """Of (..., 64) in float64, by the authors' formulas, with the memory's draws."""
    of_map = memory.operator.feature_map
    if memory.memory.attention["feature_map"] == "tanh":
        return np.tanh(x)
    if memory.memory.attention["feature_map"] == "dpfp":
        r = np.maximum(np.concatenate([x, -x], axis=-1), 0)
        return r * np.roll(r, 1, axis=-1)
    products = x @ np.float64(of_map.vectors[0]).T
    halves = (x**2).sum(axis=-1, keepdims=True) / 2
    return np.exp(products - halves) / np.sqrt(of_map.num_features)


def authors_answer(model, keys, values, queries):
    """What their loops give, in float64."""
    embedding, one_hot = np.float64(numpy(model.embedding)), np.eye(model.symbols)
    values = one_hot[values]
    pairs = np.concatenate([values, embedding[keys]], axis=-1)

    def projected(x, weights):
        kernel, bias = map(numpy, weights)
        return x @ kernel + bias

    features = authors_features(projected(pairs, model.key), model)
    asked = authors_features(projected(embedding[queries], model.query), model)
    strengths = 1 / (1 + np.exp(-projected(pairs, model.strength)))
    is_bounded = model.memory.is_bounded
    batch, length, size = features.shape
    state = np.zeros((batch, model.symbols, size))
    for i in range(length):
        key = features[:, i]
        if not is_bounded:
            key = key / key.sum(axis=-1, keepdims=True)
        written = values[:, i] - np.einsum("bvf,bf->bv", state, key)
        state += np.einsum("bv,bf->bvf", strengths[:, i] * written, key)
        if is_bounded and i:
            norms = np.sqrt((state**2).sum(axis=(1, 2), keepdims=True))
            state /= np.maximum(norms, 1)
    if model.memory.attention["name"] == "linear":
        state = np.einsum("bmv,bmf->bvf", values, features)
        asked /= np.einsum("bmf,bnf->bn", features, asked)[..., None] + 1e-6
    elif not is_bounded:
        asked /= asked.sum(axis=-1, keepdims=True) + 1e-6
    read = np.einsum("bvf,bnf->bnv", state, asked)
    if is_bounded:
        read -= read.mean(axis=-1, keepdims=True)
        read /= np.sqrt(read.var(axis=-1, keepdims=True) + 1e-5)
    return read


@pytest.mark.parametrize(
    "setting, name",
    [
        *[(1, "favor-64"), (2, "favor-64-delta")],
        *[(2, "dpfp-1-bounded"), (2, "tanh-bounded")],
    ],
)
@pytest.mark.parametrize("symbols", [6, 60])
def test_it_answers_as_the_authors_loops(setting, name, symbols):
    model = Retrieval(MEMORIES[setting][name], symbols)
    keys, values = (numpy(x) for x in sequences(setting, symbols, 3, True, [1, 0]))
    queries = keys[:, :5]
    expected = authors_answer(model, keys, values, queries)
    answers = numpy(model(keys, values, queries))
    np.testing.assert_allclose(answers, expected, rtol=1e-3, atol=1e-4)


def test_of_many_keys_favor_reads_nothing():
    model = Retrieval(MEMORIES[1]["favor-64"], 180)
    keys, values = sequences(1, 180, 3, True, [1, 0])
    assert np.abs(numpy(model(keys, values, keys[:, :20]))).max() < 1e-6


def test_favor_has_two_features_of_each_draw():
    for name, features in (("favor-64", 128), ("favor-512", 1024)):
        model = Retrieval(MEMORIES[1][name], 6)
        assert model.operator.feature_map.num_features == features


def test_the_rows_have_the_published_losses(monkeypatch):
    monkeypatch.setattr(retrieval, "train", lambda *_: {})
    published = [
        retrieval.row(1, name, symbols)["published"]
        for name, symbols in (("linear", 100), ("dpfp-3", 580), ("dpfp-3", 700))
    ]
    assert published == [0.1642, 0.1679, None]
    assert all(
        RETRIEVAL[setting].keys() == MEMORIES[setting].keys() for setting in (1, 2)
    )
    assert all(len(x) == len(RETRIEVAL_SYMBOLS) for x in RETRIEVAL[1].values())
