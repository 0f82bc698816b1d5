"""Beam search against greedy search, exhaustive search, and its own invariants."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from decoding.beam_search import IMPOSSIBLE, beam_search, length_penalty
from models import build_encoder_decoder
from models.attention.cache import SlotMap, Slots, State
from tests.models import builders

pytestmark = pytest.mark.slow

START, END = 1, 2
# A step of one layer has half the operations of one of two.
SMALL = {**builders.SMALL, "num_blocks": 1}
TRANSFORMER = {**builders.TRANSFORMER, "num_layers": 1}
LINEAR = {**SMALL, "attention": {"name": "linear", "feature_map": "elu1"}}
SOURCE = np.array([[5, 3, 5, 4, 2], [4, 2, 0, 0, 0], [3, 3, 4, 2, 0]], "int32")


def numpy(tensor):
    return ops.convert_to_numpy(tensor)


def build(vocabulary_size, config=SMALL, scale=1.0):
    model = builders.randomize(build_encoder_decoder(config, vocabulary_size))
    # Far from uniform, so that no two hypotheses nearly tie.
    weights = model.embedding.embeddings
    weights.assign(weights * scale)
    return model


def search(model, source, beam_size, longest, alpha=0.6, max_lengths=None):
    batch = source.shape[0]
    source_cache = model.source_cache(source)

    def step(tokens, cache, position):
        return model.step(tokens, source_cache, cache, position)

    if max_lengths is None:
        max_lengths = np.full(batch, longest)
    found = beam_search(
        step,
        model.empty_cache(batch, beam_size),
        ops.convert_to_tensor(max_lengths, "int32"),
        longest,
        beam_size,
        alpha,
        START,
        END,
    )
    return numpy(found.tokens), numpy(found.scores)


def full_pass(model, sources, targets):
    """Logits (n, length, vocabulary) of the tokens of n padded targets."""
    before = np.pad(targets[:, :-1], ((0, 0), (1, 0)), constant_values=START)
    return numpy(model(sources, before.astype("int32"))).astype("float64")


def total_log_probs(model, source, targets):
    """Log-probabilities (n,) of padded targets (n, length) for one source."""
    logits = full_pass(model, np.repeat(source[None], len(targets), axis=0), targets)
    normalizer = np.log(np.exp(logits).sum(-1))
    chosen = np.take_along_axis(logits, targets[..., None], axis=2)[..., 0]
    return ((chosen - normalizer) * (targets != 0)).sum(1)


def assert_own_scores(model, tokens, scores):
    """Each hypothesis of `SOURCE` scores what a full pass gives it."""
    for source, texts, found in zip(SOURCE, tokens, scores, strict=True):
        lengths = (texts != 0).sum(1)
        penalties = [float(length_penalty(length, 0.6)) for length in lengths]
        expected = total_log_probs(model, source, texts) / penalties
        np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    "config", [SMALL, TRANSFORMER], ids=lambda c: c["architecture"]
)
def test_beam_of_one_is_greedy(config):
    model, longest = build(20, config), 8
    tokens, _ = search(model, SOURCE, 1, longest)
    logits = full_pass(model, SOURCE, tokens[:, 0])
    logits[..., [0, START]] = -np.inf
    # A greedy text is one whose every token is the best after those before it.
    for text, best in zip(tokens[:, 0], logits.argmax(-1), strict=True):
        length = [*text, END].index(END) + 1
        assert text[:length].tolist() == best[:length].tolist()
        assert not text[length:].any()


@pytest.mark.parametrize(
    "config", [SMALL, TRANSFORMER], ids=lambda c: c["architecture"]
)
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_beam_as_large_as_the_space_searches_all_of_it(alpha, config):
    vocabulary, longest, beams = 6, 3, 20
    model = build(vocabulary, config, scale=2.0)
    tokens, scores = search(model, SOURCE, beams, longest, alpha)
    texts = [
        [*text, END]
        for n in range(longest)
        for text in itertools.product(range(3, vocabulary), repeat=n)
    ]
    targets = np.array([text + [0] * (longest - len(text)) for text in texts])
    penalties = [float(length_penalty(len(text), alpha)) for text in texts]
    for row, source in enumerate(SOURCE):
        totals = total_log_probs(model, source, targets)
        expected = sorted(zip(totals / penalties, texts, strict=True), reverse=True)
        for rank, (score, text) in enumerate(expected[:beams]):
            np.testing.assert_allclose(scores[row, rank], score, rtol=1e-4)
            assert tokens[row, rank, : len(text)].tolist() == text


@pytest.mark.parametrize("config", [builders.SMALL, LINEAR], ids=["slots", "states"])
def test_scores_are_the_models_own(config):
    """Beams fork and merge; what is left scores what a full pass gives it."""
    model, longest, beams = build(30, config), 10, 4
    tokens, scores = search(model, SOURCE, beams, longest)
    for texts in tokens:
        ended = (texts == END).any(axis=1)
        assert (np.diff(ended.astype(int)) <= 0).all()  # finished ones come first
        assert len({tuple(text) for text in texts}) == beams
    assert_own_scores(model, tokens, scores)


def test_results_do_not_depend_on_neighbours_or_padding():
    model, limits = build(30), np.array([6, 4, 5])
    tokens, scores = search(model, SOURCE, 4, 6, max_lengths=limits)
    for row in range(3):
        source = SOURCE[row : row + 1]
        alone = np.pad(source[:, source[0] != 0], ((0, 0), (0, 4)))
        limit = limits[row : row + 1]
        one_tokens, one_scores = search(model, alone, 4, 8, max_lengths=limit)
        np.testing.assert_array_equal(one_tokens[0, :, :6], tokens[row])
        np.testing.assert_allclose(one_scores[0], scores[row], rtol=1e-4)


def scripted_search(logits, limits, beam_size, alpha):
    """A search over logits looked up by position and last token.

    Args:
      logits: (batch, positions, vocabulary, vocabulary).
      limits: the longest target of each sentence.
    """
    found = beam_search(
        scripted_step(logits),
        (),
        ops.convert_to_tensor(limits, "int32"),
        logits.shape[1],
        beam_size,
        alpha,
        START,
        END,
    )
    return numpy(found.tokens), numpy(found.scores)


def scripted_step(logits):
    logits = ops.convert_to_tensor(logits, "float32")

    def step(tokens, cache, position):
        now = ops.take(logits, position, axis=1)
        return ops.take_along_axis(now, tokens[..., None], axis=1), cache

    return step


def plain_search(logits, limit, beam_size, alpha):
    """Searches one sentence to the end in Python: (score, text) of each rank."""
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    alive, finished = [(0.0, [])], []
    for position in range(limit):
        extended = [
            (total + log_probs[position, ([START] + text)[-1], token], [*text, token])
            for total, text in alive
            for token in range(END, logits.shape[-1])
        ]
        extended.sort(reverse=True)
        extended = extended[: 2 * beam_size if beam_size > 1 else 1]
        finished += [
            (total / ((5 + len(text)) / 6) ** alpha, text)
            for total, text in extended
            if text[-1] == END
        ]
        finished = sorted(finished, reverse=True)[:beam_size]
        alive = [x for x in extended if x[1][-1] != END][:beam_size]
    left = [(total / ((5 + len(x)) / 6) ** alpha, x) for total, x in alive]
    return (finished + left)[:beam_size]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**16),
    vocabulary=st.integers(5, 10),
    longest=st.integers(1, 9),
    beam_size=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.6, 1.5]),
    preference=st.sampled_from([-3.0, 0.0, 2.0]),
)
def test_finds_what_a_plain_search_finds(
    seed, vocabulary, longest, beam_size, alpha, preference
):
    """Early stops and limits of each sentence change nothing."""
    random = np.random.default_rng(seed)
    logits = random.normal(0, 2, (4, longest, vocabulary, vocabulary))
    logits[..., END] += preference
    limits = random.integers(1, longest + 1, 4)
    tokens, scores = scripted_search(logits, limits, beam_size, alpha)
    for row, limit in enumerate(limits):
        expected = plain_search(logits[row], int(limit), beam_size, alpha)
        assert (scores[row, len(expected) :] == IMPOSSIBLE).all()
        for rank, (score, text) in enumerate(expected):
            assert tokens[row, rank][tokens[row, rank] != 0].tolist() == text
            np.testing.assert_allclose(scores[row, rank], score, rtol=1e-3, atol=1e-4)


def test_unfinished_hypotheses_fill_the_ranks_that_are_left():
    logits = np.zeros((1, 3, 9, 9))
    logits[..., 3:] = np.arange(6)
    logits[..., END] = -20
    tokens, scores = scripted_search(logits, [3], 2, 0.0)
    assert tokens[0].tolist() == [[8, 8, 8], [8, 8, 7]]
    assert np.isfinite(scores).all() and (scores > -10).all()


def test_a_sentence_stops_when_nothing_alive_can_win():
    calls = []

    def step(tokens, cache, position):
        calls.append(1)
        logits = np.full((1, 2, 5), -10.0, "float32")
        logits[..., END] = 5.0
        return ops.convert_to_tensor(logits), cache

    if keras.backend.backend() != "tensorflow":
        pytest.skip("counts the steps of an eager loop")
    found = beam_search(
        step,
        (),
        ops.convert_to_tensor([50], "int32"),
        50,
        2,
        0.6,
        START,
        END,
    )
    assert numpy(found.tokens)[0, 0, 0] == END
    assert len(calls) < 5


def test_neither_padding_nor_start_is_produced():
    logits = np.zeros((1, 5, 6, 6))
    logits[..., [0, START]] = 50.0
    tokens, _ = scripted_search(logits, [5], 3, 0.6)
    assert START not in tokens
    for text in tokens[0]:
        assert (text[: (text != 0).sum()] != 0).all()


def test_an_empty_source_is_no_crash():
    model = build(20)
    for source in ([[2, 0, 0]], [[0, 0, 0]]):
        tokens, scores = search(model, np.array(source, "int32"), 4, 3)
        assert np.isfinite(scores).all() and tokens.shape == (1, 4, 3)


@pytest.mark.parametrize(
    "config",
    [SMALL, pytest.param(TRANSFORMER, marks=pytest.mark.long)],
    ids=["transevolve", "transformer"],
)
def test_compiles_with_static_shapes(config, recent):
    model = build(20, config)
    # So long that recent positions settle and the cache grows.
    longest = 2 * recent + 3
    expected, scores = search(model, SOURCE, 3, longest)
    if keras.backend.backend() == "jax":
        import jax

        found, found_scores = jax.jit(lambda: search_tensors(model, longest))()
    else:
        import tensorflow as tf

        compiled = tf.function(search_tensors, jit_compile=True)
        found, found_scores = compiled(model, longest)
    np.testing.assert_array_equal(numpy(found), expected)
    np.testing.assert_allclose(numpy(found_scores), scores, rtol=1e-4)


def search_tensors(model, longest):
    source_cache = model.source_cache(ops.convert_to_tensor(SOURCE))

    def step(tokens, cache, position):
        return model.step(tokens, source_cache, cache, position)

    return beam_search(
        step,
        model.empty_cache(3, 3),
        ops.convert_to_tensor([longest] * 3, "int32"),
        longest,
        3,
        0.6,
        START,
        END,
    )


@pytest.mark.parametrize("change", [{"beam_size": 0}, {"alpha": -0.1}])
def test_bad_arguments_are_named(change):
    lengths = ops.convert_to_tensor([3], "int32")
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be at least"):
        beam_search(None, (), lengths, 3, **change)


def test_growing_caches_change_nothing(recent):
    """Targets past two sizes of the cache: scores are still the model's own."""
    model, longest, beams = build(30), 4 * recent + 2, 3
    weights = numpy(model.embedding.embeddings).copy()
    weights[END] *= -0.5  # an end nobody likes
    model.embedding.embeddings.assign(weights)
    tokens, scores = search(model, SOURCE, beams, longest)
    assert (tokens[:, 0] != 0).sum(axis=1).max() > 4 * recent
    assert_own_scores(model, tokens, scores)


@pytest.mark.parametrize(
    "config",
    [SMALL, pytest.param(TRANSFORMER, marks=pytest.mark.long), LINEAR],
    ids=["slots", "transformer", "states"],
)
def test_one_graph_serves_every_shape(config, recent):
    # So long that recent positions settle and the cache grows.
    model, extra = build(20, config), 2 * recent + 1

    def any_shape(source):
        source_cache = model.source_cache(source)
        return beam_search(
            lambda tokens, cache, position: model.step(
                tokens, source_cache, cache, position
            ),
            model.empty_cache(ops.shape(source)[0], 3),
            tf.math.count_nonzero(source, axis=1, dtype=tf.int32) + extra,
            None,
            3,
            start=START,
            end=END,
        )

    spec = tf.TensorSpec([None, None], tf.int32)
    compiled = tf.function(any_shape, input_signature=[spec], autograph=False)
    for source in (SOURCE, SOURCE[:1, :3]):
        lengths = (source != 0).sum(1).astype("int32") + extra
        expected, scores = search(model, source, 3, int(lengths.max()), 0.6, lengths)
        found = compiled(source)
        size = expected.shape[2]
        np.testing.assert_array_equal(found.tokens[:, :, :size], expected)
        assert not numpy(found.tokens)[:, :, size:].any()
        np.testing.assert_allclose(found.scores, scores, rtol=1e-4)


@pytest.mark.parametrize("kind", ["slots", "states"])
def test_constant_lengths_fix_no_shape_of_a_graph(kind):
    # Past two sizes of a cache that grows.
    limits, beams = [40, 25], 3
    logits = np.random.default_rng(0).normal(size=(2, max(limits), 7, 7))
    logits[..., END] -= 4  # an end nobody likes

    def constant():
        slots = (SlotMap.empty(2, beams), Slots.empty(2, beams, 1, 4, "float32"))
        return beam_search(
            scripted_step(logits),
            slots if kind == "slots" else (State(ops.zeros((2, beams, 4))),),
            ops.convert_to_tensor(limits, "int32"),
            None,
            beams,
            start=START,
            end=END,
        )

    found = tf.function(constant, autograph=False)()
    tokens, scores = scripted_search(logits, limits, beams, 0.6)
    assert (tokens[0] != 0).sum(axis=1).max() > 32
    np.testing.assert_array_equal(found.tokens[:, :, : max(limits)], tokens)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-5)
