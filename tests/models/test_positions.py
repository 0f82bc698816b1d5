"""Positions of tokens: sinusoidal, learned, or none."""

import numpy as np
import pytest

from models.layers.embedding import TokenEmbedding
from tests.models.builders import (
    EACH_ARCHITECTURE,
    MAX_LENGTH,
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
    for positions in (None, "learned"):
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
