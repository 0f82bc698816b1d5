"""Counted products against those of the traced graph."""

import math

import pytest
import tensorflow as tf

from benchmarks import models
from models import base_of, can_encode, variant_config
from models.attention import causal_chunks, linear
from models.attention.causal_chunks import CHUNK
from models.products import operations
from tests.models.graphs import taken_operations
from tests.shallow import representatives, shallow_variant

BATCH, LENGTH = 2, 96
# One attention of each way to hold an operator; the other ones take longer together.
QUICK = {None, "factored", "softmax", "literal", "linear", "delta", "local"}


def _attention(name):
    return variant_config(name).get("attention", {}).get("name")


def _is_quick(name):
    """All but what has the parts of two others together."""
    return _attention(name) in QUICK and name != "transevolve-randomff-2"


NAMES = [
    pytest.param(name, marks=() if _is_quick(name) else pytest.mark.long)
    for name in representatives()
]


def traced_operations(model, training, length=LENGTH):
    """Operations of all products in the traced step of the model."""

    @tf.function
    def step(tokens):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tokens, training=training) ** 2)
        weights = [weight.value for weight in model.trainable_weights]
        return tape.gradient(loss, weights) if training else loss

    graph = step.get_concrete_function(tf.TensorSpec([BATCH, length], tf.int32)).graph
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


def stated(name, batch_size, length):
    model = models.build(name, "small", length=length)
    return models.products(model, batch_size, length)


@pytest.mark.parametrize("name", NAMES)
def test_counted_operations_are_those_of_the_graph(name, monkeypatch):
    monkeypatch.setattr(models, "variant_config", shallow_variant)
    config = models.model_config(name, "small")
    causal = not can_encode(config)
    model = models.build(name, "small", causal, LENGTH)
    if not hasattr(model.encoder, "products"):
        pytest.skip("states no products")
    products = models.products(model, BATCH, LENGTH)
    # Each model's passes without gradients count the operations as the first one's do.
    for training in (True, False) if name == base_of(name) else (True,):
        traced = traced_operations(model, training)
        if config.get("feed_forward") == "rotation":
            # Unfolded here in a forward pass too: two kernels a layer.
            layers = config["num_blocks"] * config["num_depths"]
            traced -= (not training) * layers * 2 * (2 * 256 * 256 * 1024)
        # Pooling, logits, time vectors, and the literal form's einsums are extra.
        assert operations(products, training) == pytest.approx(traced, rel=0.01)


@pytest.mark.parametrize(
    "chunk, length, causal",
    [
        (CHUNK, 3 * CHUNK - 5, True),
        (CHUNK, 24, True),
        (4, 100, True),
        (CHUNK, 24, False),
    ],
)
def test_counted_operations_of_linear_forms(chunk, length, causal, monkeypatch):
    monkeypatch.setattr(models, "variant_config", shallow_variant)
    for module in (causal_chunks, linear):
        monkeypatch.setattr(module, "CHUNK", chunk)
    name = "transevolve-fullff-1-linear"
    model = models.build(name, "small", causal=causal)
    products = models.products(model, BATCH, length)
    for training in (True, False):
        traced = traced_operations(model, training, length)
        assert operations(products, training) == pytest.approx(traced, rel=0.01)


def test_ratios_at_the_paper_s_lengths():
    """The ratios of operations that the design names: 1.32 1.36 1.38 1.40."""
    transformer, evolving = (
        models.build(name, "small") for name in ("transformer", "transevolve-fullff-1")
    )
    ratios = [
        operations(models.products(transformer, 1, n), True)
        / operations(models.products(evolving, 1, n), True)
        for n in (1024, 2048, 3072, 4096)
    ]
    assert ratios == pytest.approx([1.32, 1.36, 1.38, 1.40], abs=0.01)


def test_each_product_s_gradients_cost_as_much_as_itself():
    products = stated("transformer", BATCH, LENGTH)
    assert operations(products, True) == 3 * operations(products, False)


def test_alike_products_are_one():
    products = stated("transformer", BATCH, LENGTH)
    assert len({product._replace(count=0) for product in products}) == len(products)
    assert {product.count for product in products} == {6}
