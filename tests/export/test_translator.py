"""Texts through a translator that has learned nothing."""

import numpy as np
import pytest
import tensorflow as tf

from data.tokenizers.subwords import END, START
from decoding.beam_search import IMPOSSIBLE
from decoding.translation import Translator
from export.translator import TextTranslator
from models.convert import fold_rotations
from tests.models.builders import SMALL
from tests.tiny_translator import SETTINGS, make_model, make_tokenizer

pytestmark = pytest.mark.slow

# The last but one is cut.
TEXTS = ["a dog", "", "two dogs run in the snow today", " \u3000", "a " * 30, "snow"]
LONGEST = 40


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer):
    return make_model(tokenizer)


@pytest.fixture(scope="module")
def text_model(model, tokenizer):
    return TextTranslator(fold_rotations(model), tokenizer, SETTINGS, LONGEST, SMALL)


@pytest.fixture(scope="module")
def translated(text_model):
    return text_model.outputs("n_best", TEXTS)


def test_the_best_come_first(text_model, translated):
    outputs = text_model.outputs("serving_default", TEXTS)
    answers = [text_model.answer(output) for output in outputs]
    cut = [answer.truncated for answer in answers]
    assert cut == [False, False, False, False, True, False]
    for text, answer, best in zip(TEXTS, answers, translated, strict=True):
        assert answer.text == str(answer) == best["translations"][0].decode()
        assert answer.score == best["scores"][0]
        if not text.strip():
            assert best["translations"].tolist() == [b"", b"", b""]
            assert best["scores"].tolist() == [0, np.float32(IMPOSSIBLE), IMPOSSIBLE]
        else:
            assert (best["scores"] > IMPOSSIBLE).all()


def test_a_text_does_not_depend_on_the_others(text_model, translated):
    for text, expected in zip(TEXTS, translated, strict=True):
        (alone,) = text_model.outputs("n_best", [text])
        assert alone["translations"].tolist() == expected["translations"].tolist()
        np.testing.assert_allclose(alone["scores"], expected["scores"], rtol=1e-4)


def test_evaluation_finds_the_same(model, tokenizer, translated):
    strategy = tf.distribute.get_strategy()
    texts = [text for text in TEXTS if len(text) < 40]
    evaluated = Translator(model, tokenizer, SETTINGS, (8, 16), strategy)
    expected = [
        best["translations"][0].decode()
        for text, best in zip(TEXTS, translated, strict=True)
        if text in texts
    ]
    assert evaluated.translate(texts) == expected


def test_scores_are_those_of_a_pass_over_each_pair(text_model, model, tokenizer):
    sources = ["a dog", "snow", "two dogs run", ""]
    targets = ["snow today", "a", "", "dogs"]
    found = text_model.outputs("score", sources, targets)
    for source, target, scored in zip(sources, targets, found, strict=True):
        rows = [
            tokenizer(tf.constant([text])).to_list()[0] for text in (source, target)
        ]
        inputs, wanted = (np.array([[*row, END]]) for row in rows)
        before = np.array([[START, *rows[1]]])
        log_probs = tf.nn.log_softmax(model(inputs, before, training=False))[0]
        expected = sum(log_probs[i, token] for i, token in enumerate(wanted[0]))
        assert scored["tokens"] == wanted.size
        np.testing.assert_allclose(scored["log_prob"], expected, rtol=1e-5)


def test_encode_shows_what_the_model_sees(text_model):
    found = text_model.encode(tf.constant(TEXTS))
    assert found["ids"].shape == (len(TEXTS), LONGEST)
    lengths = found["mask"].numpy().sum(1)
    assert lengths[1] == lengths[3] == 1 and lengths[4] == LONGEST


@pytest.mark.parametrize("signature", ["serving_default", "n_best"])
def test_no_texts_have_no_answers(text_model, signature):
    assert text_model.outputs(signature, []) == []
    found = getattr(text_model, signature)(tf.constant([], tf.string))
    assert all(value.shape[0] == 0 for value in found.values())
