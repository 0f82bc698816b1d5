"""Continuing texts: against a loop written out, and the distribution that is drawn."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from ml_collections import ConfigDict

from decoding.sampling import chooser, continued, searched
from models import build_language_model
from tests.models.builders import CAUSAL_CONFIGS, numpy, randomize

VOCABULARY_SIZE, END, COUNT = 12, 2, 9
SETTINGS = {"temperature": 0.0, "top_k": None, "top_p": None}


def settings(**changes):
    return ConfigDict({**SETTINGS, **changes})


@pytest.fixture(scope="module", params=["transformer", "transevolve-fullff-2-linear"])
def model(request):
    config = CAUSAL_CONFIGS[request.param]
    return randomize(build_language_model(config, VOCABULARY_SIZE, 0, 40))


def by_hand(model, prompt, choose):
    text = list(prompt)
    for _ in range(COUNT):
        logits = model(np.array([text]))[:, -1]
        token = int(choose(logits, len(text) - 1)[0])
        if token == END:
            break
        text.append(token)
    return text[len(prompt) :]


def likeliest(model, prompt, count):
    """Of all continuations of so many tokens, or of fewer and an end."""
    tokens = [token for token in range(1, VOCABULARY_SIZE) if token != END]
    texts = [
        [*prompt, *inner, last]
        for length in range(1, count + 1)
        for inner in itertools.product(tokens, repeat=length - 1)
        for last in ([*tokens, END] if length == count else [END])
    ]
    width, start = max(map(len, texts)), len(prompt) - 1
    rows = np.array([text + [0] * (width - len(text)) for text in texts])
    logits = np.array(tf.nn.log_softmax(model(rows[:, :-1])), np.float64)[:, start:]
    targets = rows[:, len(prompt) :]
    log_probs = np.take_along_axis(logits, targets[..., None], axis=2)[..., 0]
    best = texts[np.argmax(np.sum(log_probs * (targets != 0), axis=1))]
    return [token for token in best[len(prompt) :] if token != END]


def continuing(model, choose, count=COUNT, how=continued):
    """A function of prompts, traced once, that gives the list of each one's tokens."""

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32)]
        + [tf.TensorSpec([None], tf.int32)]
    )
    def follow(prompts, lengths):
        beams = choose if how is searched else 1
        cache = model.empty_cache(tf.shape(prompts)[0], beams)
        return how(model, cache, prompts, lengths, count, choose, END)

    return lambda prompts: continuations(follow, prompts)


def continuations(follow, prompts):
    lengths = np.array([len(prompt) for prompt in prompts], np.int32)
    padded = np.zeros((len(prompts), lengths.max()), np.int32)
    for row, prompt in zip(padded, prompts, strict=True):
        row[: len(prompt)] = prompt
    tokens = numpy(follow(padded, lengths))
    return [list(row[row != 0]) for row in tokens]


PROMPTS = [[2], [2, 5, 6, 7], [2, *([3, 9] * 9)], [2, 4]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "temperature", [pytest.param(0.0, marks=pytest.mark.long), 1.5]
)
def test_each_text_goes_on_as_alone_and_by_hand(model, temperature):
    choose = chooser(settings(temperature=temperature), seed=3)
    follow = continuing(model, choose)
    found = follow(PROMPTS)
    assert found == [by_hand(model, prompt, choose) for prompt in PROMPTS]
    assert any(found) and follow(PROMPTS[1:2]) == found[1:2]


@pytest.mark.slow
def test_a_search_finds_the_likeliest_of_all_continuations(model):
    follow = continuing(model, VOCABULARY_SIZE**2, count=3, how=searched)
    # An end within a text ends nothing.
    prompts = [[2], [2, 5, END, 6, 7], [2, 4]]
    assert follow(prompts) == [likeliest(model, prompt, 3) for prompt in prompts]


@pytest.mark.slow
def test_a_search_with_one_hypothesis_takes_the_likeliest_token_each_time(model):
    greedy = continuing(model, chooser(settings(), seed=0))(PROMPTS)
    assert continuing(model, 1, how=searched)(PROMPTS) == greedy


def drawn(logits, **changes):
    """Shares of what is drawn at many positions."""
    choose = chooser(settings(**changes), seed=0)
    rows = tf.constant([logits], tf.float32)
    draw = tf.function(
        lambda count: tf.map_fn(lambda x: choose(rows, x)[0], tf.range(count))
    )
    tokens = numpy(draw(3000))
    return np.bincount(tokens, minlength=len(logits)) / len(tokens)


LOGITS = np.log([0.9, 0.05, 0.4, 0.3, 0.15, 0.1])  # the first is padding's


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"temperature": 1.0}, [0.05, 0.4, 0.3, 0.15, 0.1]),
        ({"temperature": 2.0}, softmax(LOGITS[1:] / 2)),
        ({"temperature": 1.0, "top_k": 2}, [0, 4 / 7, 3 / 7, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.75}, [0, 8 / 17, 6 / 17, 3 / 17, 0]),
        ({"temperature": 1.0, "top_p": 1e-6}, [0, 1, 0, 0, 0]),
        ({"temperature": 0.0}, [0, 1, 0, 0, 0]),
    ],
)
def test_what_is_drawn_has_its_distribution(changes, expected):
    np.testing.assert_allclose(drawn(LOGITS, **changes), [0, *expected], atol=0.04)
