"""Positions of tokens: sinusoidal, learned, rotary, or none."""

import numpy as np
import pytest
from keras import ops

from models import build_classifier
from models.attention.rotary import rotated
from models.convert import with_attention
from models.layers.embedding import IN_ATTENTION, TokenEmbedding
from tests.models.builders import (
    EACH_ARCHITECTURE,
    LITERAL,
    MAX_LENGTH,
    SMALL,
    VOCABULARY_SIZE,
    build_any,
    numpy,
    randomize,
    tokens,
)
from tests.models.test_attention import normal

pytestmark = pytest.mark.jax

SOURCE = tokens(length=9)


def embedding(positions):
    layer = TokenEmbedding(40, 8, positions, MAX_LENGTH)
    layer.build((None, None))
    return randomize(layer)


@EACH_ARCHITECTURE
def test_without_positions_order_does_not_matter(config):
    model = build_any({**config, "positions": "none"}, decoder=False)
    np.testing.assert_allclose(
        numpy(model(SOURCE[:, ::-1])), numpy(model(SOURCE)), rtol=0, atol=1e-5
    )
    for positions in (None, "learned", "rotary"):
        model = build_any({**config, "positions": positions}, decoder=False)
        outputs = [numpy(model(source)) for source in (SOURCE, SOURCE[:, ::-1])]
        assert np.abs(outputs[0] - outputs[1]).max() > 1e-3


def test_a_learned_vector_is_added_at_each_position():
    layer = embedding("learned")
    without = numpy(embedding("none")(SOURCE))
    added = numpy(layer(SOURCE)) - without
    expected = np.broadcast_to(numpy(layer.position_embeddings)[:9], added.shape)
    np.testing.assert_allclose(added, expected, rtol=0, atol=1e-6)


def test_positions_after_the_longest_have_its_last_learned_vector():
    layer = embedding("learned")
    vectors = numpy(layer(np.ones((1, MAX_LENGTH + 3), "int32")))[0]
    np.testing.assert_array_equal(vectors[MAX_LENGTH:], vectors[MAX_LENGTH - 1 :][:3])
    assert (vectors[MAX_LENGTH - 2] != vectors[MAX_LENGTH - 1]).any()


def test_learned_positions_need_to_know_how_many():
    with pytest.raises(ValueError, match="learned positions need a max_length"):
        TokenEmbedding(40, 8, "learned")


def after_padding(model, x):
    """What an encoder gives of texts (2, length, 32) that three tokens of padding
    begin."""
    mask = np.tile(np.arange(x.shape[1] + 3) >= 3, (2, 1))
    x = np.concatenate([np.ones((2, 3, 32), "float32"), x], axis=1)
    return numpy(model.encoder(x, mask))[:, 3:]


# Those whose scores are products of a query and a key. Blocks of `local` need not
# begin where they did.
@pytest.mark.parametrize(
    "attention",
    [{}, {"name": "local", "window": 4}, {"name": "talking-heads"}],
    ids=["softmax", "local", "talking-heads"],
)
@pytest.mark.parametrize("use", ["self", "causal"])
@EACH_ARCHITECTURE
def test_rotary_positions_leave_a_shifted_text_as_it_is(config, use, attention):
    config = {**config, "positions": "rotary", "use": use}
    config["attention"] = attention or config["attention"]
    model, x = build_any(config, decoder=False), normal(2, 6, 32)
    outputs, shifted = numpy(model.encoder(x)), after_padding(model, x)
    np.testing.assert_allclose(shifted, outputs, rtol=0, atol=1e-4)


def test_features_of_rotated_vectors_tell_a_shifted_text_apart():
    """The product of two features is no function of the product of their vectors."""
    attention = {"name": "linear", "feature_map": "elu1"}
    model = build_any(
        {**SMALL, "attention": attention, "positions": "rotary"}, decoder=False
    )
    x = normal(2, 6, 32)
    outputs, shifted = numpy(model.encoder(x)), after_padding(model, x)
    assert np.abs(shifted - outputs).max() > 1e-2


@pytest.mark.parametrize("positions", IN_ATTENTION)
@EACH_ARCHITECTURE
def test_texts_longer_than_the_longest_are_served(config, positions):
    config = {**config, "positions": positions}
    models = [
        randomize(build_classifier(config, VOCABULARY_SIZE, 4, max_length=length))
        for length in (MAX_LENGTH, 2 * MAX_LENGTH)
    ]
    source = tokens(length=MAX_LENGTH + 9)
    np.testing.assert_allclose(*(numpy(x(source)) for x in models), rtol=0, atol=1e-5)


@EACH_ARCHITECTURE
def test_attentions_that_have_weights_for_positions_refuse_longer_texts(config):
    attention = {"name": "linformer", "projected_length": 5}
    config = {**config, "attention": attention, "positions": "rotary"}
    model = build_any(config, decoder=False)
    assert np.isfinite(numpy(model(tokens(length=MAX_LENGTH)))).all()
    with pytest.raises(ValueError, match=f"at most max_length={MAX_LENGTH}, got"):
        model(tokens(length=MAX_LENGTH + 1))


def test_rotary_products_depend_on_distances_alone():
    x, y = map(ops.convert_to_tensor, normal(2, 1, 1, 1, 8))

    def product(i, j):
        turned = rotated(x, ops.arange(i, i + 1)), rotated(y, ops.arange(j, j + 1))
        return float(ops.sum(turned[0] * turned[1]))

    assert product(9, 4) == pytest.approx(product(105, 100), abs=1e-4)
    assert abs(product(9, 4) - product(9, 5)) > 1e-2
    assert product(7, 7) == pytest.approx(float(ops.sum(x * y)), abs=1e-5)


def test_the_literal_form_rotates_too():
    config = {**SMALL, "num_blocks": 1, "positions": "rotary"}
    literal = build_any({**config, "attention": LITERAL}, decoder=False)
    fast = with_attention(literal, "factored")
    np.testing.assert_allclose(
        numpy(fast(SOURCE)), numpy(literal(SOURCE)), rtol=0, atol=1e-4
    )
