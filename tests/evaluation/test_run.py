"""Opening a run in the form that it has, and in another one."""

import re

import numpy as np
import pytest
import tensorflow as tf

from common.errors import UserError
from decoding.translation import search
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from models import count_parameters
from models.attention import OPERATORS
from models.attention.softmax import SoftmaxOperator
from models.convert import fold_rotations
from tests import scripts, translation
from tests.runs import untrained

pytestmark = pytest.mark.slow


class Gated(SoftmaxOperator):
    """With a weight."""

    def build(self, layer, size):
        layer.add_weight(name="gate", shape=(), initializer="ones")


@pytest.fixture
def gated(monkeypatch, tmp_path):
    """The workdir of a run with that attention."""
    monkeypatch.setitem(OPERATORS, "gated", Gated)
    config = scripts.listops_config(tmp_path, "transevolve-fullff-1-gated")
    return untrained(config, tmp_path / "run")


def test_a_form_that_leaves_a_weight_unused_is_refused_by_its_name(gated):
    assert load_run(gated).config.variant == "transevolve-fullff-1-gated"
    said = "--attention=factored: expected a form with the weights that the run has, "
    said += "found a difference in classifier/encoder/block_0/attention/gate"
    with pytest.raises(UserError, match=f"^{re.escape(said)}$"):
        evaluate(gated, attention="factored")
    assert not (gated / "results").exists()


def test_a_weight_on_which_no_output_depends_may_go_unused(gated, monkeypatch):
    monkeypatch.setattr(Gated, "inert_weights", ("gate",))
    exact = load_run(gated, attention="factored").model
    gated = load_run(gated).model
    ids = np.array([[1, 2, 3, 4]])
    np.testing.assert_array_equal(exact(ids), gated(ids))


def test_a_model_without_attention_has_no_other_form(tmp_path):
    config = scripts.listops_config(tmp_path, "bag-of-words")
    workdir = untrained(config, tmp_path / "run")
    said = "^--attention: expected one of none, found linear$"
    with pytest.raises(UserError, match=said):
        load_run(workdir, attention="linear")


def test_what_counts_passes_may_go_unused_and_is_no_parameter(tmp_path):
    config = scripts.listops_config(tmp_path, "transevolve-fullff-1-linear-favor")
    config.model.attention.redraw_every = 1
    workdir = untrained(config, tmp_path / "run")
    result, _ = evaluate(workdir, attention="factored")
    assert result["parameters"] == count_parameters(load_run(workdir).model)


def test_in_its_own_form_a_run_keeps_its_fields(tmp_path):
    config = scripts.listops_config(tmp_path, "transevolve-fullff-1-linear-favor")
    config.model.attention.num_features = 64
    workdir = untrained(config, tmp_path / "run")
    same = load_run(workdir, attention="linear-favor")
    assert same.config.to_dict() == load_run(workdir).config.to_dict()
    assert evaluate(workdir, attention="linear-favor")[0] == evaluate(workdir)[0]


def test_a_longer_search_has_the_weights_by_position_of_training(tmp_path):
    translation.write(tmp_path)
    by_position = {"model.positions": "learned"}
    config = translation.config(tmp_path, "transformer", **by_position)
    workdir = untrained(config, tmp_path / "run")
    decode = {"extra_length": config.decode.extra_length + 10}
    usual, longer = load_run(workdir), load_run(workdir, decode=decode)
    for weight, other in zip(usual.model.weights, longer.model.weights, strict=True):
        np.testing.assert_array_equal(weight, other)
    sources = tf.ones([1, 24], tf.int32)
    tokens, scores = search(
        fold_rotations(longer.model), sources, longer.config.decode, static_shapes=True
    )
    assert tokens.shape[2] == 24 + longer.config.decode.extra_length
    assert np.isfinite(scores).all()


def test_a_longer_search_than_scores_have_positions_for_is_refused(tmp_path):
    translation.write(tmp_path)
    config = translation.config(tmp_path, "transformer-synthesizer-random")
    workdir, trained = untrained(config, tmp_path / "run"), config.decode.extra_length
    load_run(workdir, decode={"extra_length": trained})
    message = f"decode.extra_length: expected at most {trained}, as in training, with "
    with pytest.raises(UserError, match=f"{message}the attention synthesizer, found"):
        load_run(workdir, decode={"extra_length": trained + 1})
