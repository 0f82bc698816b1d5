"""The authors' code is called by a clone of it, of which these are smaller models."""

import json

import pytest

from benchmarks import authors, calls, models
from benchmarks.calls import Setting
from common.errors import UserError

NAME = "transevolve-randomff-2"
SHAPE = (3, 16)
MODULES = {
    "core_layers": "",
    # As their beam search imports a module beside it.
    "beside": "",
    "utils": """
import tensorflow as tf

def padded_cross_entropy_loss(logits, labels, smoothing):
    assert smoothing == 0.1
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
""",
    "models": """
import json
from pathlib import Path

import beside
import tensorflow as tf
from TransEvolve.TransEvolve import core_layers

WIDTH = 4
SAID = {"keras": tf.keras.layers.Dense.__module__.split(".")[0], "calls": []}

class Model(tf.keras.models.Model):
    def __init__(self, input_dim, **sizes):
        super().__init__()
        SAID.update(model=type(self).__name__, **sizes)
        self.embedding = tf.keras.layers.Embedding(input_dim, WIDTH)
        outputs = input_dim if "num_classes" not in sizes else 1
        activation = None if "num_classes" not in sizes else "sigmoid"
        self.dense = tf.keras.layers.Dense(outputs, activation=activation)

    def say(self, training, *inputs):
        SAID["calls"].append([training, *(list(x.shape) for x in inputs)])
        Path(__file__).with_name("said").write_text(json.dumps(SAID))
        if training:
            path = Path(__file__).with_name("weights")
            tf.print(self.dense.kernel[0, 0], output_stream=f"file://{path}")

class ClassificationModel(Model):
    def call(self, src_inp, training):
        self.say(training, src_inp)
        return self.dense(tf.reduce_mean(self.embedding(src_inp), axis=1))

class EncoderDecoderModel(Model):
    def call(self, src_inp, tar_inp, training):
        self.say(training, src_inp, tar_inp)
        return self.dense(self.embedding(src_inp) + self.embedding(tar_inp))
""",
}


@pytest.fixture
def clone(tmp_path):
    """Of another name than the authors' repository has."""
    for name, text in MODULES.items():
        path = tmp_path / f"theirs/TransEvolve/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "theirs"


@pytest.mark.parametrize("mode, xla", [("train", False), ("inference", True)])
@pytest.mark.parametrize("task", ["classification", "translation"])
def test_models_are_made_and_called_as_theirs(clone, task, mode, xla):
    pytest.importorskip("tf_keras")
    name, setting = f"{clone}:{NAME}", Setting(mode, task, size="base", xla=xla)
    calls.check([name], setting, [name])
    model = calls.prepare(name, setting, *SHAPE)
    model.attempt()
    model.attempt()
    model.close()
    assert model.not_run is None
    is_classifier = task == "classification"
    words = models.VOCABULARY_SIZE if is_classifier else models.NUM_SUBWORDS
    outputs = 1 if is_classifier else words
    assert model.parameters == 4 * words + 4 * outputs + outputs
    said = json.loads((clone / "TransEvolve/said").read_text())
    sides = 1 if is_classifier else 2
    built, traced, *again = said.pop("calls")
    assert built == [False, *[[1, 1]] * sides]
    assert traced == [mode == "train", *[list(SHAPE)] * sides]
    if mode == "train":
        assert again == [traced]  # when the optimizer has made its variables
        first, second = (clone / "TransEvolve/weights").read_text().split()
        assert first != second
    assert said.pop("num_classes", None) == (2 if is_classifier else None)
    assert said == {
        "model": "ClassificationModel" if is_classifier else "EncoderDecoderModel",
        "keras": "tf_keras",
        "hidden_dim": 512,
        "num_head": 8,
        "projection_type": "random",
        "num_layers_per_block": 3,
        "num_blocks": 2,
        "dropout": 0.1,
    }


def test_heads_of_another_size_are_refused(clone):
    with pytest.raises(UserError, match=f"{clone}:{NAME} .*64 numbers, as --size=base"):
        calls.prepare(f"{clone}:{NAME}", Setting(), *SHAPE)


@pytest.mark.parametrize("variant", ["transformer", f"{NAME}-literal"])
def test_their_code_has_the_papers_variants_alone(clone, variant):
    name = f"{clone}:{variant}"
    with pytest.raises(UserError, match=f"--models: expected some of {NAME[:-1]}1, "):
        calls.check([name], Setting(size="base"), [name])


@pytest.mark.parametrize("field, value", [("precision", "bfloat16"), ("causal", True)])
def test_what_their_code_lacks_is_refused(clone, field, value):
    name = f"{clone}:{NAME}"
    with pytest.raises(UserError, match=f"--{field}: {name} has no other"):
        calls.check([name], Setting(size="base", **{field: value}), [name])


def test_keras_2_must_be_installed(clone, monkeypatch):
    monkeypatch.setattr(calls.importlib.util, "find_spec", lambda name: None)
    name = f"{clone}:{NAME}"
    with pytest.raises(UserError, match="expected tf_keras to be installed"):
        calls.check([name], Setting(size="base"), [name])


def test_this_repository_is_no_clone_of_theirs(clone):
    assert authors.is_clone(clone) and not authors.is_clone(clone.parent)
