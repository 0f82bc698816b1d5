"""Counted products against those of the traced graph."""

import math

import pytest
import tensorflow as tf

from benchmarks import models
from benchmarks.products import encoder_products, operations
from configs.common import SIZES, VARIANTS
from tests.models.test_factored_graph import taken_operations

BATCH, LENGTH = 2, 96
NAMES = models.names()


def traced_operations(name, training):
    """Operations of all products in the traced step of the real model."""
    model = models.build(name, "small")

    @tf.function
    def step(tokens):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tokens, training=training) ** 2)
        weights = [weight.value for weight in model.trainable_weights]
        return tape.gradient(loss, weights) if training else loss

    graph = step.get_concrete_function(tf.TensorSpec([BATCH, LENGTH], tf.int32)).graph
    return sum(_product_operations(op) for op in taken_operations(graph))


def _product_operations(operation):
    if operation.type in ("MatMul", "BatchMatMulV2"):
        left, right = (tensor.shape for tensor in operation.inputs)
        flag = "transpose_a" if operation.type == "MatMul" else "adj_x"
        inner = left[-2] if operation.get_attr(flag) else left[-1]
        return 2 * math.prod(operation.outputs[0].shape) * inner
    if operation.type == "Einsum":
        sizes = {}
        equation = operation.get_attr("equation").decode()
        for letters, tensor in zip(
            equation.split("->")[0].split(","), operation.inputs, strict=True
        ):
            sizes.update(zip(letters, tensor.shape, strict=True))
        return 2 * math.prod(sizes.values())
    return 0


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_counted_operations_are_those_of_the_graph(name, training):
    config = models.model_config(name, "small")
    counted = operations(config, BATCH, LENGTH, training)
    traced = traced_operations(name, training)
    if config.get("feed_forward") == "rotation" and not training:
        # Unfolded here: two kernels a layer.
        traced -= 6 * 2 * (2 * 256 * 256 * 1024)
    # Pooling and logits, time vectors, and the literal form's odd einsums are extra.
    assert counted == pytest.approx(traced, rel=0.01)


def test_ratios_at_the_paper_s_lengths():
    """The ratios of operations that the design names: 1.32 1.36 1.38 1.40."""
    ratios = [
        operations({**VARIANTS["transformer"], **SIZES["small"]}, 1, n, True)
        / operations({**VARIANTS["transevolve-fullff-1"], **SIZES["small"]}, 1, n, True)
        for n in (1024, 2048, 3072, 4096)
    ]
    assert ratios == pytest.approx([1.32, 1.36, 1.38, 1.40], abs=0.01)


def test_each_product_s_gradients_cost_as_much_as_itself():
    config = {**VARIANTS["transformer"], **SIZES["small"]}
    products = encoder_products(config, BATCH, LENGTH)
    forward = sum(
        product.operations for product in products if not product.training_only
    )
    assert sum(product.operations for product in products) == 3 * forward
