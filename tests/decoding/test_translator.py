"""Lists of texts through a model that has learned nothing."""

import io

import numpy as np
import pytest
import sentencepiece
from ml_collections import ConfigDict

from common.errors import UserError
from data.tokenizers.subwords import SubwordTokenizer
from decoding.translator import Translation, Translator
from models import build_encoder_decoder
from tests.models.builders import SMALL, randomize

pytestmark = pytest.mark.slow

# The last but one is longer than the last bucket.
TEXTS = ["a dog", "", "two dogs run in the snow today", "a " * 20, "snow"]
MODEL = {**SMALL, "num_blocks": 1}
SETTINGS = ConfigDict(
    {"beam_size": 3, "length_penalty": 0.6, "extra_length": 4, "batch_size": 2}
)


@pytest.fixture(scope="module")
def tokenizer():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["two dogs run in the snow today", "a dog"]),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    return SubwordTokenizer(model.getvalue())


@pytest.fixture(scope="module")
def translator(tokenizer):
    config = {**MODEL, "feed_forward": "rotation"}
    model = randomize(build_encoder_decoder(config, tokenizer.vocabulary_size))
    return Translator(model, tokenizer, SETTINGS, (8, 16))


@pytest.fixture(scope="module")
def translated(translator):
    done = []
    return translator.translate(TEXTS, done.append), done


def test_every_text_has_its_best_translations(translated):
    results, done = translated
    assert len(results) == len(TEXTS) and sum(done) == len(TEXTS)
    assert results[1] == [Translation("", 0.0)]
    for best in results[:1] + results[2:]:
        assert len(best) == SETTINGS.beam_size
        assert all(np.isfinite(translation.score) for translation in best)
        assert all(isinstance(translation.text, str) for translation in best)


def test_a_text_does_not_depend_on_the_others(translator, translated):
    for text, expected in zip(TEXTS, translated[0], strict=True):
        (alone,) = translator.translate([text])
        assert [x.text for x in alone] == [x.text for x in expected]
        np.testing.assert_allclose(
            [x.score for x in alone], [x.score for x in expected], rtol=1e-4
        )


def test_refreshed_it_has_the_models_new_weights(translator, translated):
    model, weights = translator.model, translator.model.get_weights()
    randomize(model, seed=1)
    translator.refresh()
    (other,) = translator.translate(TEXTS[:1])
    model.set_weights(weights)
    translator.refresh()
    (again,) = translator.translate(TEXTS[:1])
    assert other[0].score != translated[0][0][0].score
    assert again == translated[0][0]


@pytest.mark.parametrize("texts", [[], [""], [" ", "\t"]])
def test_nothing_to_translate(translator, texts):
    assert translator.translate(texts) == [[Translation("", 0.0)] for _ in texts]


def test_weights_that_are_not_finite(tokenizer):
    model = build_encoder_decoder(MODEL, tokenizer.vocabulary_size)
    model.embedding.embeddings.assign(model.embedding.embeddings * np.nan)
    with pytest.raises(UserError, match="found weights not finite"):
        Translator(model, tokenizer, SETTINGS, (8, 16)).translate(["a dog"])
