"""What every text model takes, a newcomer's too, and what it refuses."""

import re

import numpy as np
import pytest
import tensorflow as tf

from common.errors import UserError
from data.tokenizers.bytes import ByteTokenizer
from data.tokenizers.word_pieces import WordPieceTokenizer
from evaluation.run import load_run
from export.classifier import TextClassifier
from export.text_model import list_of_texts
from export.translator import TextTranslator
from models import build_classifier
from tests import scripts
from tests.models.builders import SMALL
from tests.runs import untrained
from tests.tiny_translator import SETTINGS, make_model, make_tokenizer
from tests.toys import NextByte, NextToken

pytestmark = pytest.mark.slow

WRONG = {
    "a scalar": "x y",
    "a matrix": [["a", "c"], ["b", "d"]],
    "an empty matrix": np.zeros([0, 2], str),
    "a cube": [[["a"]]],
}


def classifier():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"]
    model = build_classifier(SMALL, len(pieces), 2)
    return TextClassifier(model, WordPieceTokenizer(pieces), ("x", "y"), 8, SMALL)


def translator():
    tokenizer = make_tokenizer()
    return TextTranslator(make_model(tokenizer), tokenizer, SETTINGS, 8, SMALL)


def toy():
    model = NextToken(257, 8, 0)
    model.build((None, None))
    return NextByte(model, ByteTokenizer(), "float32")


@pytest.fixture(scope="module", params=[classifier, translator, toy])
def text_model(request):
    return request.param()


@pytest.fixture(scope="module")
def asked(text_model):
    """{name: (a function that calls a signature without knowing shapes, inputs)}."""

    def wrapped(function):
        specs = function.get_concrete_function().structured_input_signature[0]
        specs = [tf.TensorSpec(None, tf.string, spec.name) for spec in specs]
        wrapper = tf.function(lambda *x: function(*x), input_signature=specs)
        return wrapper, len(specs)

    return {name: wrapped(getattr(text_model, name)) for name in text_model.signatures}


def test_every_signature_refuses_what_is_not_a_batch(text_model, asked):
    for name, (ask, count) in asked.items():
        for texts in WRONG.values():
            texts = tf.constant(texts, tf.string)
            shape = "[" + " ".join(map(str, texts.shape)) + "]"
            said = f"text.*: expected texts of shape [batch].*, found shape {shape}"
            said = re.escape(said).replace(r"\.\*", ".*")
            with pytest.raises(tf.errors.InvalidArgumentError, match=said):
                ask(*[texts] * count)
            # Where TensorFlow knows the shape it refuses by itself.
            with pytest.raises(TypeError, match=r"shape=\(None,\)"):
                getattr(text_model, name)(*[texts] * count)


def test_every_signature_takes_a_batch_of_any_size(asked):
    for ask, count in asked.values():
        for size in (0, 1, 3):
            texts = [tf.constant(["a b"] * size, tf.string)] * count
            assert {len(values) for values in ask(*texts).values()} == {size}


def test_columns_of_other_sizes_are_refused(asked):
    for ask, count in asked.values():
        if count == 1:
            continue
        for sizes in ((2, 3), (1, 3), (3, 0)):
            columns = [tf.constant(["a"] * size, tf.string) for size in sizes]
            said = "text, translation: expected texts of shape [batch], as many of "
            said += "each, found shape [{}] and [{}]".format(*sizes)
            with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(said)):
                ask(*columns)


def test_any_iterable_of_texts_is_taken():
    texts = ["a", b"\xff", ""]
    for given in (texts, tuple(texts), iter(texts), dict.fromkeys(texts)):
        assert list_of_texts(given) == texts
    for given in (np.array(["a", "b"]), np.array(["a", "b"], object)):
        assert list_of_texts(given) == ["a", "b"]
    assert list_of_texts(tf.constant(["a", "b"])) == [b"a", b"b"]
    assert list_of_texts([]) == []


@pytest.mark.parametrize(
    "given, found",
    [
        ("one text", "one text; put it into a list: [text]"),
        (b"one text", "one text; put it into a list: [text]"),
        (5, "int"),
        (None, "NoneType"),
        ([None], "NoneType at index 0"),
        (["a", 5], "int at index 1"),
        (["a", ["b"]], "list at index 1"),
        (np.array(["a"])[0:1].reshape(()), "0 dimensions"),
        (np.array([["a"]]), "2 dimensions"),
        (tf.constant("a"), "0 dimensions"),
        (tf.constant([1]), "int32 at index 0"),
        (
            ["a", "\ud800"],
            "one that UTF-8 has no bytes for, surrogates not allowed at index 1",
        ),
    ],
)
def test_what_is_no_list_of_texts_is_told_in_one_line(given, found):
    with pytest.raises(UserError) as caught:
        list_of_texts(given)
    said = str(caught.value)
    assert said == f"texts: expected a list of str or bytes, found {found}"


def test_predict_takes_texts_and_nothing_else(tmp_path):
    config = scripts.listops_config(tmp_path)
    run = load_run(untrained(config, tmp_path / "run"))
    with pytest.raises(UserError, match="^texts: expected a list of str or bytes"):
        run.predict("[MAX 1 2 ]")
    one, other = run.predict(np.array(["[MAX 1 2 ]", "[MIN 1 2 ]"]))
    assert run.predict(iter(["[MAX 1 2 ]", b"[MIN 1 2 ]"])) == [one, other]
