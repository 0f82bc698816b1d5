"""Lists of texts through a model that has learned nothing, as evaluation does it."""

import numpy as np
import pytest
import tensorflow as tf

from common.errors import UserError
from decoding import translation
from decoding.translation import Translator
from tests.models.builders import randomize
from tests.tiny_translator import SETTINGS, make_model, make_tokenizer

pytestmark = pytest.mark.slow

# The last but one is longer than the last bucket.
TEXTS = ["a dog", "", "two dogs run in the snow today", "a " * 20, "snow"]


@pytest.fixture(scope="module")
def translator():
    tokenizer = make_tokenizer()
    strategy = tf.distribute.get_strategy()
    return Translator(make_model(tokenizer), tokenizer, SETTINGS, (8, 16), strategy)


@pytest.fixture
def weights(translator):
    """The model's, which it has again after the test."""
    weights = translator.model.get_weights()
    yield weights
    translator.model.set_weights(weights)
    translator.refresh()


@pytest.fixture(scope="module")
def translated(translator):
    done = []
    return translator.translate(TEXTS, done.append), done


def test_every_text_has_a_translation(translated):
    results, done = translated
    assert len(results) == len(TEXTS) and sum(done) == len(TEXTS)
    assert results[1] == "" and any(results)


def test_a_text_does_not_depend_on_the_others(translator, translated):
    for text, expected in zip(TEXTS, translated[0], strict=True):
        assert translator.translate([text]) == [expected]


def test_what_is_cut_is_said(translator, caplog, monkeypatch):
    assert translation.longest_source((8, 16)) == 1024
    monkeypatch.setattr(translation, "longest_source", lambda lengths: 18)
    caplog.set_level("WARNING", logger="transevolve")
    translator.translate(["a dog", "a " * 30])
    said = [line.message for line in caplog.records if line.name == "transevolve"]
    assert said == ["text 2: cut at 17 subwords"]


def test_refreshed_it_has_the_models_new_weights(translator, translated, weights):
    randomize(translator.model, seed=1)
    translator.refresh()
    others = translator.translate(TEXTS)
    translator.model.set_weights(weights)
    translator.refresh()
    assert translator.translate(TEXTS) == translated[0] != others


@pytest.mark.parametrize("texts", [[], [""], [" ", "\t"]])
def test_nothing_to_translate(translator, texts):
    assert translator.translate(texts) == [""] * len(texts)


def test_weights_that_are_not_finite(translator, weights):
    table = translator.model.embedding.embeddings
    table.assign(table * np.nan)
    translator.refresh()
    with pytest.raises(UserError, match="found weights not finite"):
        translator.translate(["a dog"])
