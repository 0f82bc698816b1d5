"""Linear attention without attention normalisation: what is read is not divided."""

import pytest

from common.errors import UserError
from configs import plain_text
from models import check, variant_config
from models.attention import causal_chunks, linear
from models.attention.linear import CHUNKS, SHORT, SUMS, LinearOperator
from tests.models import test_attention
from tests.models.test_operators import (
    assert_gradients_equal_differences,
    assert_reads_equal_the_definition,
    make,
)

pytestmark = pytest.mark.jax

ELU = {"feature_map": "elu1", "attention_normalisation": False}
DPFP = {**ELU, "feature_map": "dpfp", "nu": 1}
FAVOR = {
    **{**variant_config("transformer-linear-favor")["attention"], **ELU},
    "feature_map": "favor",
    "num_features": 12,
    "sum_normalisation": True,
}
del FAVOR["name"]
EACH_MAP = pytest.mark.parametrize(
    "hyperparameters", [ELU, DPFP, FAVOR], ids=["elu1", "dpfp", "favor"]
)


@pytest.fixture
def small_chunks(monkeypatch):
    for module in (causal_chunks, linear):
        monkeypatch.setattr(module, "CHUNK", 4)


@pytest.mark.parametrize(
    "use, length, order",
    [
        *(("self", 6, SHORT), ("self", 37, SUMS)),
        *(("causal", 4, SHORT), ("causal", 37, CHUNKS)),
    ],
)
@EACH_MAP
def test_reads_and_gradients_are_those_of_the_definition(
    small_chunks, hyperparameters, use, length, order
):
    operator, layer = make("linear", hyperparameters, use, length)
    features = operator.feature_map.num_features
    assert linear.order_of(length, length, features, 18, use == "causal") == order
    arguments = "linear", operator, layer, hyperparameters, length
    assert_reads_equal_the_definition(*arguments)
    assert_gradients_equal_differences(*arguments)


@pytest.mark.parametrize("architecture", ["transformer", "transevolve"])
@EACH_MAP
def test_steps_equal_the_parallel_form(recent, architecture, hyperparameters):
    config = {"name": "linear", **hyperparameters}
    test_attention.test_steps_equal_the_parallel_form(architecture, config, recent)


@pytest.mark.parametrize("use", ["self", "causal"])
def test_a_query_that_sees_no_real_key_gets_zero(use):
    for architecture in ("transformer", "transevolve"):
        test_attention.test_a_query_that_sees_no_real_key_gets_zero(
            architecture, {"name": "linear", **DPFP}, use
        )


def test_what_favor_lacks_must_be_divided_out():
    config = plain_text.get_config("transformer-linear-favor")
    config.model.attention.attention_normalisation = False
    with pytest.raises(UserError, match="sum_normalisation: expected True with"):
        check(config)
    config.model.attention.sum_normalisation = True
    check(config)


def test_it_does_not_serve_as_cross_attention():
    with pytest.raises(ValueError, match="attention_normalisation"):
        LinearOperator(2, "cross", 0, **ELU)
