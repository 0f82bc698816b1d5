"""Texts through a classifier that has learned nothing."""

import numpy as np
import pytest
import tensorflow as tf

from common.errors import UserError
from data.tokenizers.bytes import ByteTokenizer
from export.classifier import TextClassifier
from models import build_classifier
from models.convert import fold_rotations
from tests.models.builders import SMALL, randomize

CLASSES = ("good", "bad", "neither")
LONGEST = 20
TEXTS = ["a dog", "", "two dogs run in the snow", "b" * 20, "b" * 21, "ü", b"\xff\0"]


def as_bytes(text):
    return text.encode() if isinstance(text, str) else text


@pytest.fixture(scope="module")
def model():
    config = {**SMALL, "num_blocks": 1, "feed_forward": "rotation"}
    return randomize(build_classifier(config, 257, len(CLASSES)))


@pytest.fixture(scope="module")
def text_model(model):
    folded = fold_rotations(model)
    return TextClassifier(folded, ByteTokenizer(), CLASSES, LONGEST, SMALL)


def test_scores_are_those_of_the_model(model, text_model):
    found = text_model.serving_default(tf.constant(TEXTS))
    for text, scores in zip(TEXTS, found["scores"].numpy(), strict=True):
        ids = [byte + 1 for byte in as_bytes(text)][:LONGEST] or [0]
        logits = model(np.array([ids]), training=False)
        np.testing.assert_allclose(tf.nn.softmax(logits)[0], scores, atol=1e-5)
    cut = [len(as_bytes(text)) > LONGEST for text in TEXTS]
    assert found["truncated"].numpy().tolist() == cut and sum(cut) == 2
    labels = [CLASSES[index].encode() for index in found["label_id"]]
    assert found["label"].numpy().tolist() == labels
    np.testing.assert_array_equal(found["label_id"], np.argmax(found["scores"], axis=1))


def test_what_a_person_is_told(text_model):
    outputs = text_model.outputs("serving_default", TEXTS)
    answers = [text_model.answer(output) for output in outputs]
    assert [str(answer) for answer in answers] == [answer.label for answer in answers]
    for answer in answers:
        assert max(answer.scores, key=answer.scores.get) == answer.label
        assert sum(answer.scores.values()) == pytest.approx(1)


def test_encode_shows_what_the_model_sees(text_model):
    found = text_model.encode(tf.constant(TEXTS))
    assert found["ids"].shape == (len(TEXTS), LONGEST)
    lengths = found["mask"].numpy().sum(1).tolist()
    assert lengths == [min(len(as_bytes(text)), LONGEST) for text in TEXTS]


def test_no_texts_have_no_answers(text_model):
    found = text_model.serving_default(tf.constant([], tf.string))
    assert found["scores"].shape == (0, len(CLASSES))
    assert text_model.encode(tf.constant([], tf.string))["ids"].shape == (0, 1)
    assert text_model.outputs("serving_default", []) == []


def test_stored_in_half_the_bytes(model):
    folded = fold_rotations(model)
    stored = TextClassifier(
        folded, ByteTokenizer(), CLASSES, LONGEST, SMALL, "bfloat16"
    )
    assert {weight.dtype for weight in stored.weights} == {tf.bfloat16}
    for weight in folded.weights:
        weight.assign(tf.cast(tf.cast(weight.value, tf.bfloat16), tf.float32))
    rounded = TextClassifier(folded, ByteTokenizer(), CLASSES, LONGEST, SMALL)
    found = [x.serving_default(tf.constant(TEXTS))["scores"] for x in (stored, rounded)]
    np.testing.assert_allclose(*found, atol=1e-6)


def test_weights_that_are_not_finite():
    model = build_classifier(SMALL, 257, len(CLASSES))
    model.norm.gamma.assign(model.norm.gamma * np.nan)
    with pytest.raises(UserError, match="found weights not finite"):
        TextClassifier(model, ByteTokenizer(), CLASSES, LONGEST, SMALL)
