"""Positions of tokens: sinusoidal, learned, rotary, or none."""

import numpy as np
import pytest
from keras import ops

from models.attention.heads import rotated
from models.convert import with_attention
from models.layers.embedding import TokenEmbedding
from tests.models.builders import (
    EACH_ARCHITECTURE,
    LITERAL,
    MAX_LENGTH,
    SMALL,
    build_any,
    numpy,
    randomize,
    tokens,
)

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


@pytest.mark.parametrize("use", ["self", "causal"])
@EACH_ARCHITECTURE
def test_rotary_positions_leave_a_shifted_text_as_it_is(config, use):
    model = build_any({**config, "positions": "rotary", "use": use}, decoder=False)
    x = np.random.default_rng(0).normal(size=(2, 6, 32)).astype("float32")
    before = np.zeros((2, 3), bool)
    mask = np.concatenate([before, np.ones((2, 6), bool)], axis=1)
    shifted = np.concatenate([np.ones((2, 3, 32), "float32"), x], axis=1)
    outputs = numpy(model.encoder(shifted, mask))[:, 3:]
    np.testing.assert_allclose(outputs, numpy(model.encoder(x)), rtol=0, atol=1e-4)


def test_rotary_products_depend_on_distances_alone():
    x, y = np.random.default_rng(0).normal(size=(2, 1, 1, 1, 8)).astype("float32")

    def product(i, j):
        turned = rotated(x, ops.arange(i, i + 1)), rotated(y, ops.arange(j, j + 1))
        return float(ops.sum(turned[0] * turned[1]))

    assert product(9, 4) == pytest.approx(product(105, 100), abs=1e-4)
    assert abs(product(9, 4) - product(9, 5)) > 1e-2
    assert product(7, 7) == pytest.approx(float(np.sum(x * y)), abs=1e-5)


def test_the_literal_form_rotates_too():
    config = {**SMALL, "num_blocks": 1, "positions": "rotary"}
    literal = build_any({**config, "attention": LITERAL}, decoder=False)
    fast = with_attention(literal, "factored")
    np.testing.assert_allclose(
        numpy(fast(SOURCE)), numpy(literal(SOURCE)), rtol=0, atol=1e-4
    )
