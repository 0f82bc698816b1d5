"""What is made once a block, however often its depths read it."""

import keras
import pytest
from keras import ops

from benchmarks.traced_products import taken_operations
from models import variant_config
from models.layers.embedding import RELATIVE
from models.residual_step import RESIDUAL_STEPS
from models.transevolve import ARCHITECTURE as TRANSEVOLVE
from tests.models.builders import LITERAL, build, tokens
from tests.models.gradients import gradients

LENGTH = 48  # no other size of the model


def square_tensors(model, leading=()):
    """Names of the tensors of LENGTH x LENGTH in a traced training step.

    Args:
      leading: sizes that they begin with.
    """
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def step(tokens):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tokens, training=True) ** 2)
        return tape.gradient(loss, [weight.value for weight in model.trainable_weights])

    graph = step.get_concrete_function(tf.TensorSpec([2, LENGTH], tf.int32)).graph
    return [
        tensor.name
        for operation in taken_operations(graph)
        # The same tensor by another name.
        if operation.type
        not in ("Placeholder", "Identity", "IdentityN", "StopGradient")
        for tensor in operation.outputs
        if tensor.shape.rank
        and tensor.shape[-2:] == [LENGTH, LENGTH]
        and tensor.shape[: len(leading)] == list(leading)
    ]


@pytest.mark.parametrize("step", ["rk4", "strang"])
@pytest.mark.parametrize(
    "attention",
    [
        {"name": "factored"},
        {"name": "local", "window": 4},
        {"name": "linear", "feature_map": "elu1"},
        variant_config("transevolve-fullff-1-delta")["attention"],
    ],
    ids=["softmax", "local", "linear", "delta"],
)
def test_an_operator_is_made_once_a_block(attention, step, monkeypatch):
    kind = TRANSEVOLVE.attentions.named()[attention["name"]]
    make, operators = kind.make, []

    def counted(operator, inputs, columns):
        operators.append(operator)
        return make(operator, inputs, columns)

    monkeypatch.setattr(kind, "make", counted)
    use = "self" if "self" in kind.uses else "causal"
    model = build(attention=attention, residual_step=step, use=use)
    gradients(model, lambda call: ops.sum(ops.square(call(tokens()))))
    assert operators == [block.attention.operator for block in model.encoder.layers]


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="traces a TensorFlow graph"
)
class TestSquareTensors:
    @pytest.mark.parametrize("feed_forward", ["dense", "rotation"])
    def test_their_number_does_not_grow_with_depth(self, feed_forward):
        # Scores and E; E's gradient, and that of the scores.
        for depths in (1, 3):
            model = self.model(depths, feed_forward=feed_forward)
            assert len(square_tensors(model)) == 4

    @pytest.mark.parametrize("name", RESIDUAL_STEPS)
    def test_their_number_does_not_grow_with_the_stages_of_a_step(self, name):
        model = self.model(2, residual_step=name)
        assert len(square_tensors(model)) == 4

    @pytest.mark.parametrize("positions", RELATIVE)
    def test_relative_positions_add_few(self, positions):
        # Those that each text and head has: forward what is added, if texts differ, and
        # the sum; backward the entries at either end of the distances.
        model = self.model(2, positions=positions)
        added = 1 if positions == "relative-bias" else 4
        assert len(square_tensors(model, leading=[2, 4])) == 4 + added

    def test_those_of_the_literal_form_do_grow(self):
        few, many = (
            len(square_tensors(self.model(depths, attention=LITERAL)))
            for depths in (1, 4)
        )
        assert many > 2 * few

    def model(self, num_depths, **changes):
        return build(num_blocks=1, num_depths=num_depths, dropout=0.1, **changes)
