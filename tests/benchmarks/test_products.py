"""Products of traced graphs against what is run, and against counts by hand."""

import re

import keras
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from benchmarks import models
from benchmarks.traced_products import TRANSPOSITIONS, Product, products
from models import base_of, can_encode, variant_config
from tests.shallow import LAYERS, representatives, shallow_variant

BATCH, LENGTH = 2, 96
WIDTH, HEADS, FFN = 256, 8, 1024
# One attention of each way to hold an operator; the other ones take longer together.
QUICK = {None, "factored", "softmax", "literal", "linear", "delta", "local"}


def _attention(name):
    return variant_config(name).get("attention", {}).get("name")


# These have the parts of two others together.
BOTH = {"transevolve-randomff-2", "transevolve-fullff-2-linear"}


def _is_quick(name):
    return _attention(name) in QUICK and name not in BOTH


NAMES = [
    pytest.param(name, marks=() if _is_quick(name) else pytest.mark.long)
    for name in representatives()
    if name != "bag-of-words"  # pooling and logits alone
]


def step_of(model, training):
    def step(tokens):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tokens, training=training) ** 2)
        weights = [weight.value for weight in model.trainable_weights]
        return tape.gradient(loss, weights) if training else loss

    return step


def operations(function, *shape, dtype="int32"):
    """Operations of all products of a function, traced."""
    traced = tf.function(function).get_concrete_function(tf.TensorSpec(shape, dtype))
    return sum(product.operations for product in products(traced.graph))


def operations_run(function, *arguments):
    """Operations of all products that TensorFlow runs, without a graph."""
    each = []

    def add(kind, inputs, attributes, outputs, op_name=None, graph=None):
        kind = tf.compat.as_str(kind)
        options = dict(zip(attributes[::2], attributes[1::2], strict=True))
        shapes = tuple(tuple(x.shape) for x in inputs)
        if kind in TRANSPOSITIONS:
            turned = tuple(bool(options[name]) for name in TRANSPOSITIONS[kind])
            each.append(Product(shapes, turned).operations)
        elif kind == "Einsum":
            equation = tf.compat.as_str(options["equation"])
            each.append(Product(shapes, equation=equation).operations)
        else:
            assert not re.search("MatMul|Conv|Call", kind), kind

    tf.config.run_functions_eagerly(True)
    op_callbacks.add_op_callback(add)
    try:
        function(*arguments)
    finally:
        op_callbacks.remove_op_callback(add)
        tf.config.run_functions_eagerly(False)
    return sum(each)


@pytest.mark.parametrize("name", NAMES)
def test_traced_products_are_those_that_run(name, monkeypatch):
    """No product is in a loop or a call, where none is counted, and of conditionals the
    branch that is counted is taken."""
    monkeypatch.setattr(models, "variant_config", shallow_variant)
    causal = not can_encode(models.model_config(name, "small"))
    model = models.build(name, "small", causal, LENGTH)
    tokens = keras.random.randint((BATCH, LENGTH), 1, models.VOCABULARY_SIZE)
    # Each model's passes without gradients have the products of the first one's.
    for training in (True, False) if name == base_of(name) else (True,):
        step = step_of(model, training)
        # What is run has also what nothing needs, such as gradients of masks.
        ran = operations_run(step, tokens)
        assert operations(step, BATCH, LENGTH) == pytest.approx(ran, rel=0.002)


def forward_by_hand(name, depths):
    """Operations of a forward pass, of one block."""
    tokens, pairs = BATCH * LENGTH, BATCH * LENGTH**2
    dense = tokens * WIDTH**2 + 2 * tokens * WIDTH * FFN
    pooling_and_logits = tokens * WIDTH + BATCH * WIDTH * models.NUM_CLASSES
    if name == "transformer":
        projections = tokens * WIDTH * 3 * WIDTH
        scores_and_values = 2 * pairs * WIDTH
        each, once = projections + scores_and_values + dense, 0
    else:
        projections = 2 * tokens * WIDTH * 2 * WIDTH
        biases = (WIDTH + tokens * HEADS) * 2 * WIDTH * depths  # and how they are made
        scores, sums = pairs * 2 * WIDTH, pairs * HEADS * depths
        each, once = pairs * WIDTH + dense, projections + biases + scores + sums
    return 2 * (depths * each + once + pooling_and_logits)


@pytest.mark.parametrize("name", ["transformer", "transevolve-fullff-1"])
def test_products_are_those_counted_by_hand(name, monkeypatch):
    monkeypatch.setattr(models, "variant_config", shallow_variant)
    model = models.build(name, "small", length=LENGTH)
    forward, update = (
        operations(step_of(model, training), BATCH, LENGTH)
        for training in (False, True)
    )
    assert forward == forward_by_hand(name, LAYERS)
    # A product has two gradients, each of which costs as much as itself.
    assert update == pytest.approx(3 * forward, rel=0.001)


def test_ratios_at_the_paper_s_lengths():
    """The ratios of operations that the design names: 1.32 1.36 1.38 1.40."""
    transformer, evolving = (
        step_of(models.build(name, "small"), training=False)
        for name in ("transformer", "transevolve-fullff-1")
    )
    ratios = [
        operations(transformer, 1, n) / operations(evolving, 1, n)
        for n in (1024, 2048, 3072, 4096)
    ]
    assert ratios == pytest.approx([1.32, 1.36, 1.38, 1.40], abs=0.01)


def products_of(function, *shape):
    traced = tf.function(function).get_concrete_function(tf.TensorSpec(shape))
    return products(traced.graph)


@pytest.mark.parametrize(
    "function, product, operations",
    [
        (
            lambda x: tf.matmul(x, tf.ones((3, 4)), transpose_a=True),
            Product(((3, 5), (3, 4)), (True, False)),
            2 * 5 * 3 * 4,
        ),
        (
            lambda x: tf.matmul(x, tf.ones((7, 1, 4, 5)), transpose_b=True),
            Product(((3, 5), (7, 1, 4, 5)), (False, True)),
            2 * 7 * 3 * 5 * 4,
        ),
        (
            lambda x: tf.einsum("ab,cbd->acd", x, tf.ones((2, 5, 4))),
            Product(((3, 5), (2, 5, 4)), equation="ab,cbd->acd"),
            2 * 3 * 5 * 2 * 4,
        ),
    ],
    ids=["matrices", "stacks", "equation"],
)
def test_a_product_s_operations(function, product, operations):
    assert products_of(function, 3, 5) == [product]
    assert product.operations == operations


def test_a_product_is_named_by_its_factors():
    product = Product(((8, 4, 2), (8, 4, 2)), (False, True))
    assert product.name == "8×4×2 · 8×4×2ᵀ"
    product = Product(((4, 2), (2, 4)), equation="ab,bc->ac")
    assert product.name == "ab,bc->ac 4×2 · 2×4"


def test_alike_products_are_one_and_the_largest_is_first():
    def function(x):
        y = tf.matmul(x, x)
        large = tf.matmul(tf.ones((8, 6)), tf.ones((6, 8)))
        return tf.matmul(y, x), large

    assert products_of(function, 6, 6) == [
        Product(((6, 6), (6, 6)), count=2),
        Product(((8, 6), (6, 8))),
    ]


def test_what_no_output_needs_is_not_counted():
    def function(x):
        tf.matmul(x, x)
        return tf.matmul(x, x, transpose_b=True)

    (product,) = products_of(function, 6, 6)
    assert product.transposed == (False, True)


def test_of_a_conditional_the_usual_branch_is_counted():
    def seldom(x):
        return tf.matmul(x, tf.matmul(x, x))

    def function(x):
        usual = lambda: tf.matmul(x, x, transpose_a=True)  # noqa: E731
        return tf.cond(x[0, 0] > 0, usual, lambda: seldom(x))

    assert products_of(function, 6, 6) == [Product(((6, 6), (6, 6)), (True, False))]
