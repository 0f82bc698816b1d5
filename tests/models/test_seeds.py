"""Initial weights and dropout follow from the seed and the path alone."""

import numpy as np
import pytest

from models import build_classifier, build_encoder_decoder
from models.seeds import derive_seed
from tests.models.builders import (
    MAX_LENGTH,
    SMALL_CONFIGS,
    VOCABULARY_SIZE,
    numpy,
)
from tests.shallow import with_marks

# Weights whose first values a paper states.
STATED = ("log_decay", "frequency")


def test_a_path_may_be_cut_anywhere():
    assert derive_seed(derive_seed(7, "a"), "b", "c") == derive_seed(7, "a", "b", "c")
    assert derive_seed(7, "a", "b") != derive_seed(7, "b", "a")
    assert derive_seed(7, "a") != derive_seed(8, "a")
    assert 0 <= derive_seed(7, "a") < 2**31


def weights(config, seed=0):
    model = build_classifier(config, VOCABULARY_SIZE, 4, seed, MAX_LENGTH)
    return {
        weight.path: numpy(weight)
        for weight in model.trainable_variables
        if weight.name not in STATED
    }


@pytest.mark.parametrize("name", with_marks(SMALL_CONFIGS))
def test_a_seed_gives_the_same_weights_whatever_was_made_before(name):
    config = SMALL_CONFIGS[name]
    # The other is what was made before.
    first, other, again = (weights(config, seed) for seed in (0, 1, 0))
    drawn = 0
    for path, value in first.items():
        np.testing.assert_array_equal(again[path], value)
        if value.std() > 0:  # neither a gain nor a bias
            drawn += 1
            assert (other[path] != value).any(), path
    assert drawn >= 2


@pytest.mark.parametrize("name", with_marks(SMALL_CONFIGS))
def test_no_two_weights_are_drawn_alike(name):
    seen = {}
    for path, value in weights(SMALL_CONFIGS[name]).items():
        if value.std() > 0:
            start = tuple((value / value.std()).flatten()[:4].round(4))
            assert start not in seen, (path, seen.get(start))
            seen[start] = path


def test_an_encoder_starts_alike_in_both_models():
    config = SMALL_CONFIGS["transformer"]
    classifier = build_classifier(config, VOCABULARY_SIZE, 4)
    translator = build_encoder_decoder(config, VOCABULARY_SIZE)
    for one, other in zip(
        classifier.encoder.weights, translator.encoder.weights, strict=True
    ):
        np.testing.assert_array_equal(numpy(one), numpy(other))
