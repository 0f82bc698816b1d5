"""Classifiers as wholes: counts, padding, order, saving, seeds."""

import keras
import numpy as np
import pytest
from keras import ops

from models import build_classifier
from models.attention.attention import Attention
from models.convert import fold_rotations
from models.layers.rotation_dense import RotationDense
from tests.conftest import ROOT
from tests.models.builders import (
    EACH_ARCHITECTURE,
    LITERAL,
    SMALL,
    TRANSFORMER,
    VOCABULARY_SIZE,
    build,
    compiled,
    count_parameters,
    randomize,
    tokens,
)

BASE = {
    "architecture": "transevolve",
    "hidden_dim": 512,
    "num_heads": 8,
    "ffn_dim": 2048,
    "dropout": 0.1,
}
# Of the authors' code: 4 classes, 32,000 words. randomFF holds d_ff - d unused
# singular values a contraction there; the paper's min(input, output) does not.
OFFICIAL_COUNTS = {
    ("rotation", 1): 20_104_196,
    ("rotation", 2): 22_202_372,
    ("dense", 1): 32_671_748,
    ("dense", 2): 34_769_924,
}


def numpy(tensor):
    return ops.convert_to_numpy(tensor)


def transformer():
    return randomize(build_classifier(TRANSFORMER, 40, 4))


@pytest.mark.parametrize("feed_forward, num_blocks", OFFICIAL_COUNTS)
@pytest.mark.parametrize("form", ["literal", "factored"])
@pytest.mark.parametrize("fidelity", ["paper", "official"])
def test_parameters_are_as_many_as_the_authors(
    feed_forward, num_blocks, form, fidelity
):
    config = {
        **BASE,
        "feed_forward": feed_forward,
        "num_blocks": num_blocks,
        "num_depths": 6 // num_blocks,
        "attention": {"name": form},
        "fidelity": fidelity,
    }
    expected = OFFICIAL_COUNTS[feed_forward, num_blocks]
    if feed_forward == "rotation" and fidelity == "paper":
        expected -= 6 * (2048 - 512)
    if form == "factored":
        expected -= num_blocks * 512 * 1024
    assert count_parameters(build_classifier, config, 32_000, 4) == expected


def test_transformer_parameter_count():
    config = {
        **BASE,
        "architecture": "transformer",
        "attention": {"name": "softmax"},
        "num_layers": 6,
    }
    layer = 4 * 512**2 + 2 * 512 * 2048 + 2048 + 512 + 2 * 1024
    expected = 32_000 * 512 + 6 * layer + 2 * 1024 + 512 * 4 + 4
    assert count_parameters(build_classifier, config, 32_000, 4) == expected


MAKERS = {
    "factored": build,
    "literal": lambda: build(attention=LITERAL),
    "rotation": lambda: build(feed_forward="rotation"),
    "transformer": transformer,
}


# No test changes it.
@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.long if name == "literal" else ())
        for name in MAKERS
    ],
)
def model(request):
    return MAKERS[request.param]()


@pytest.fixture(scope="module")
def logits(model):
    return numpy(model(tokens()))


class TestEveryEncoder:
    def test_padding_changes_nothing(self, model):
        short = tokens(length=7)
        padded = np.pad(short, ((0, 0), (0, 6)))
        np.testing.assert_allclose(
            numpy(model.encode(padded))[:, :7], numpy(model.encode(short)), atol=1e-5
        )
        np.testing.assert_allclose(
            numpy(model(padded)), numpy(model(short)), rtol=0, atol=1e-5
        )

    def test_rows_are_independent(self, model, logits):
        ids = tokens()
        alone = np.concatenate([numpy(model(ids[i : i + 1])) for i in range(3)])
        np.testing.assert_allclose(logits, alone, rtol=0, atol=1e-5)

    def test_tokens_at_other_positions_permute_without_positions(self, model):
        # Attention knows order only through the position vectors: exchange them
        # along with the tokens and the outputs exchange.
        ids = tokens()
        order = np.random.default_rng(3).permutation(ids.shape[1])
        embedded = numpy(model.embedding(ids))
        mask = np.ones(ids.shape, bool)
        np.testing.assert_allclose(
            numpy(model.encoder(embedded[:, order], mask)),
            numpy(model.encoder(embedded, mask))[:, order],
            rtol=0,
            atol=1e-5,
        )

    def test_nothing_but_padding_is_finite(self, model):
        ids = tokens()
        ids[1] = 0
        assert np.isfinite(numpy(model(ids))).all()

    def test_config_makes_the_same_model(self, model, logits):
        twin = type(model).from_config(model.get_config())
        twin.build((None, None))
        twin.set_weights(model.get_weights())
        np.testing.assert_array_equal(numpy(twin(tokens())), logits)

    def test_saves_and_loads(self, model, logits, tmp_path):
        model.save(tmp_path / "model.keras")
        twin = keras.saving.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(numpy(twin(tokens())), logits)

    def test_compiles_with_static_shapes(self, model, logits):
        found, shape = compiled(model, [tokens()])
        assert list(shape) == [3, 4]
        np.testing.assert_allclose(found, logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "config", [SMALL, TRANSFORMER], ids=lambda c: c["architecture"]
)
def test_no_two_dropouts_share_a_seed(config):
    model = build_classifier({**config, "dropout": 0.1}, 40, 4, seed=3)
    seeds = [
        tuple(numpy(variable))
        for variable in model.variables
        if variable.name == "seed_generator_state"
    ]
    assert len(seeds) == len(set(seeds)) >= 4


@pytest.mark.parametrize(
    "config",
    [SMALL, {**SMALL, "feed_forward": "rotation"}, TRANSFORMER],
    ids=["dense", "rotation", "transformer"],
)
def test_mixed_precision_keeps_weights_and_nearly_the_outputs(config):
    model = randomize(build_classifier(config, 40, 4))
    mixed = build_classifier({**config, "dtype": "mixed_bfloat16"}, 40, 4)
    assert {layer.compute_dtype for layer in mixed._flatten_layers()} == {"bfloat16"}
    assert {weight.dtype for weight in mixed.trainable_variables} == {"float32"}
    mixed.set_weights(model.get_weights())
    # More real tokens than bfloat16 can count.
    ids = tokens(length=300, padding=[(0, slice(290, None))])
    logits, expected = (numpy(ops.cast(m(ids), "float32")) for m in (mixed, model))
    assert np.any(logits != expected)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=0.05)


def test_dropout_acts_in_training_only():
    model, ids = build(dropout=0.5), tokens()
    assert np.any(numpy(model(ids, training=True)) != numpy(model(ids)))
    np.testing.assert_array_equal(numpy(model(ids)), numpy(model(ids)))


def test_folded_rotations_give_the_same_outputs():
    model = build(feed_forward="rotation")
    folded = fold_rotations(model)
    assert not any(isinstance(x, RotationDense) for x in folded._flatten_layers())
    np.testing.assert_allclose(
        numpy(folded(tokens())), numpy(model(tokens())), rtol=0, atol=1e-5
    )


def rotation(depth=0, seed=0, units=64, width=32, **arguments):
    layer = RotationDense(units, depth, 3, seed=seed, **arguments)
    layer.build((None, width))
    return layer


def test_rotations_depend_on_seed_and_depth_alone():
    first, again = rotation(), rotation()
    np.testing.assert_array_equal(numpy(first.left), numpy(again.left))
    for other in (rotation(depth=1), rotation(seed=1)):
        assert np.abs(numpy(first.left) - numpy(other.left)).max() > 0.05
        assert np.abs(numpy(first.right) - numpy(other.right)).max() > 0.05


@pytest.mark.parametrize(
    "feed_forward, size",
    [
        ("rotation", (8 * 256 * 1024) ** -0.5),
        ("dense", (2 * 256 * 1024) ** 0.5 / (256 + 1024)),
    ],
)
def test_a_branch_starts_at_the_size_that_its_page_says(feed_forward, size):
    x = np.random.default_rng(0).normal(size=(200, 256)).astype("float32")
    sizes = {"hidden_dim": 256, "ffn_dim": 1024, "num_depths": 2}
    config = {**SMALL, **sizes, "feed_forward": feed_forward}
    model = build_classifier(config, VOCABULARY_SIZE, 4)
    for layer in model.encoder.layers[0].feed_forwards:
        ratio = np.linalg.norm(numpy(layer(x))) / np.linalg.norm(x)
        assert ratio == pytest.approx(size, rel=0.15)
    page = (ROOT / "docs/fidelity.md").read_text()
    assert f"| {size:.2g} |" in page


def test_rotations_are_no_weights():
    names = sorted(weight.name for weight in rotation().weights)
    assert names == ["bias", "singular_values"]


@pytest.mark.parametrize("width, units", [(32, 128), (128, 32), (32, 32)])
def test_rotation_rows_have_the_norms_of_appendix_b(width, units):
    # U U^T has the diagonal 1/2, and small entries beside it.
    layer = rotation(width=width, units=units, depth=1)
    if width <= units:
        left = numpy(layer.left)
        np.testing.assert_allclose((left**2).sum(1), 0.5, rtol=1e-5)
    right = numpy(layer.right)
    product = right @ right.T
    np.testing.assert_allclose(np.diag(product), 0.5, rtol=1e-5)
    off = product - np.diag(np.diag(product))
    assert np.abs(off).mean() < 2 / np.sqrt(units) * 0.5


@pytest.mark.parametrize(
    "change, message",
    [
        ({"attention": {"name": "quick"}}, "attention must be one of"),
        ({"feed_forward": "none"}, "feed_forward must be one of"),
        ({"fidelity": "exact"}, "fidelity must be paper or official, and"),
        ({"num_heads": 5}, "must be a multiple of twice num_heads=5"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        build(**change)


@EACH_ARCHITECTURE
def test_attentions_learn_which_lengths_they_must_serve(config):
    model = build_classifier(config, VOCABULARY_SIZE, 4, max_length=14)
    attentions = [
        layer for layer in model._flatten_layers() if isinstance(layer, Attention)
    ]
    assert {layer.max_length for layer in attentions} == {14}


@EACH_ARCHITECTURE
@pytest.mark.jax
def test_keras_fits_it(config):
    """Gradients by hand take what its trainer hands them, on any backend."""
    model = randomize(build_classifier(config, VOCABULARY_SIZE, 4))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-2), loss)
    labels = np.arange(8) % 4
    losses = model.fit(tokens(8), labels, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2
