"""Weights that find no partner are an error, never left random."""

import keras
import numpy as np
import pytest

from models.attention import OPERATORS
from models.attention.softmax import SoftmaxOperator
from models.convert import carry_weights, fold_rotations, with_attention
from models.layers.rotation_dense import RotationDense
from tests.models.builders import LITERAL, build


class WiderOperator(SoftmaxOperator):
    """As the softmax, with a weight that is not inert."""

    def build(self, layer, size):
        layer.add_weight(name="gate", shape=(3,), initializer="ones")


@pytest.fixture
def wider(monkeypatch):
    monkeypatch.setitem(OPERATORS, "wider", WiderOperator)


def test_a_weight_that_only_one_has_is_named(wider):
    with pytest.raises(ValueError, match="attention/gate: only the new form has"):
        with_attention(build(), "wider")
    with pytest.raises(ValueError, match="attention/gate: only the original has"):
        with_attention(build(attention={"name": "wider"}), "factored")


def test_inert_weights_need_no_partner():
    literal = build(attention=LITERAL)
    assert len(with_attention(literal, "factored").weights) < len(literal.weights)


def test_another_shape_is_named():
    with pytest.raises(ValueError, match=": expected the shape"):
        carry_weights(build(hidden_dim=16), build())


def test_a_folded_model_lacks_nothing():
    model = build(feed_forward="rotation")
    folded = fold_rotations(model)
    assert not any(isinstance(x, RotationDense) for x in folded._flatten_layers())
    with pytest.raises(ValueError, match="has this weight"):
        carry_weights(folded, model)  # there is no way back


def test_refreshing_a_folded_model():
    model = build(feed_forward="rotation")
    folded = fold_rotations(model)
    for weight in model.trainable_variables:
        weight.assign(weight * 0.5)
    carry_weights(model, folded)
    bias = folded.encoder.layers[0].feed_forwards[0].expand.bias
    expected = model.encoder.layers[0].feed_forwards[0].expand.bias
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(bias), keras.ops.convert_to_numpy(expected)
    )
