"""What each depth does to a text, in numbers and as a picture."""

import numpy as np
import pytest
import tensorflow as tf
from matplotlib.figure import Figure
from matplotlib.image import imread

from analysis import evolution_picture
from analysis.evolution import BlockEvolution, Evolution
from analysis.evolution import evolution as evolution_of
from analysis.evolution_picture import MAX_TOKENS, draw
from common.errors import UserError
from data.tokenizers.bytes import ByteTokenizer
from data.tokenizers.word_pieces import WordPieceTokenizer
from evaluation.run import load_run
from models.convert import fold_rotations, with_attention
from models.layers.rotation_dense import RotationDense
from tests import classification, runs, scripts, translation
from tests.models.builders import numpy
from tests.models.forms import equation_9

LISTOPS = "[MAX 4 [MIN 2 8 ] 7 ]"
NUMBERS = "one two three six"
CASES = {
    "transevolve-randomff-2": LISTOPS,
    "transevolve-fullff-1-literal": LISTOPS,
    "transevolve-randomff-1": NUMBERS,
    "transevolve-fullff-2": NUMBERS,
}


def open_run(folder, variant, text, **changes):
    if text == NUMBERS:
        translation.write(folder)
        config = translation.config(folder, variant, **changes)
    else:
        config = scripts.listops_config(folder, variant, **changes)
    return load_run(runs.untrained(config, folder / "run"))


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def case(request, tmp_path_factory):
    """A run, what the model sees of a text, and how that evolves."""
    folder, text = tmp_path_factory.mktemp("run"), CASES[request.param]
    run = open_run(folder, request.param, text, **{"model.num_depths": 2})
    ids = numpy(run.text_model.encode(tf.constant([text]))["ids"])
    return run, ids, evolution_of(run, text)


@pytest.mark.slow
def test_e_and_w_make_the_attention_of_equation_9(case):
    run, ids, found = case
    model, mask = with_attention(run.model, "literal"), ids > 0
    x = model.embedding(ids)
    assert len(found.blocks) == len(model.encoder.layers) == run.config.model.num_blocks
    for block, result in zip(model.encoder.layers, found.blocks, strict=True):
        np.testing.assert_allclose(result.attention.sum(-1), 1, atol=1e-6)
        np.testing.assert_allclose(result.mean_attention.sum(-1), 1, atol=1e-6)
        np.testing.assert_allclose(result.weights.mean(-1), 1, atol=1e-6)
        assert np.ptp(result.weights, axis=(0, 2)).min() > 0.1
        values = numpy(x).astype("float64")
        by_head = values[0, mask[0]].reshape(mask.sum(), block.num_heads, -1)
        for depth in range(block.num_depths):
            attention = result.attention * result.weights[depth][:, None]
            attention /= attention.sum(-1, keepdims=True)
            attended = np.einsum("hij,jhd->ihd", attention, by_head)
            expected = equation_9(block.attention, values, mask, depth)[mask]
            np.testing.assert_allclose(
                attended.reshape(expected.shape), expected, atol=2e-5
            )
        x = block(x, mask)


@pytest.mark.slow
def test_arrays_have_a_number_for_each_token_head_and_depth(case):
    run, ids, found = case
    config = run.config.model
    assert len(found.tokens) == (ids > 0).sum()
    rank = min(config.hidden_dim, config.ffn_dim)
    for block in found.blocks:
        count, depths, heads = len(found.tokens), config.num_depths, config.num_heads
        assert block.attention.shape == (heads, count, count)
        assert block.mean_attention.shape == (count, count)
        assert block.weights.shape == (depths, heads, count)
        assert block.mean_weights.shape == (depths, count)
        assert block.expand.shape == block.contract.shape == (depths, rank)


@pytest.mark.slow
def test_spectra_are_those_of_the_folded_kernels(case):
    run, _, found = case
    layers = run.model._flatten_layers()
    assert found.rotations == any(isinstance(x, RotationDense) for x in layers)
    folded = fold_rotations(run.model)
    for block, result in zip(folded.encoder.layers, found.blocks, strict=True):
        for depth, layer in enumerate(block.feed_forwards):
            for dense, spectrum in (
                (layer.expand, result.expand[depth]),
                (layer.contract, result.contract[depth]),
            ):
                kernel = numpy(dense.kernel).astype("float64")
                if len(kernel) > len(kernel.T):
                    kernel = kernel.T
                squares = np.linalg.eigvalsh(kernel @ kernel.T)[::-1]
                np.testing.assert_allclose(spectrum**2, squares, atol=1e-5)


@pytest.mark.slow
def test_tokens_have_the_names_that_the_model_sees(case):
    run, _, found = case
    if run.config.kind == "classification":
        assert found.tokens == LISTOPS.split()
    else:
        assert "".join(found.tokens) == f"▁{NUMBERS}</s>".replace(" ", "▁")


def test_tokens_have_names():
    words = WordPieceTokenizer(classification.WORDS.split())
    assert words.names([2, 4]) == ["good", "film"]
    ids = ByteTokenizer()(tf.constant(["a é~"])).numpy()[0]
    assert ByteTokenizer().names(ids) == ["a", "·", "\\xc3", "\\xa9", "~"]


@pytest.mark.slow
def test_others_than_transevolve_are_refused(tmp_path):
    run = open_run(tmp_path, "transformer", LISTOPS)
    message = f"{tmp_path}/run: expected a TransEvolve run .*, found transformer"
    with pytest.raises(UserError, match=f"^--workdir={message}$"):
        evolution_of(run, LISTOPS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [*(pytest.param(x, marks=pytest.mark.long) for x in ("", " \n")), "foo"]
)
def test_texts_without_tokens_are_refused(case, text):
    run, ids, _ = case
    if text == "foo" and run.config.kind == "translation":
        assert evolution_of(run, text).tokens[-1] == "</s>"
        return
    expected = "one balanced ListOps expression"
    if run.config.kind == "translation":
        expected = "a text with tokens"
    with pytest.raises(UserError, match=f"^--text: expected {expected}"):
        evolution_of(run, text)


def made(tokens, blocks, depths, heads, seed=0):
    """An evolution of nothing: random numbers, token 3 up and token 5 down at last."""
    random = np.random.default_rng(seed)
    count = len(tokens)

    def shares(*shape):
        x = np.exp(random.normal(0, 0.3, shape))
        return x / x.sum(-1, keepdims=True)

    def block():
        weights = count * shares(depths, heads, count)
        weights[-1, :, 2], weights[-1, :, 4] = 3.5, 0.1
        attention = shares(heads, count, count)
        spectra = np.sort(random.uniform(0, 1, (2, depths, 16)))[..., ::-1]
        return BlockEvolution(attention, weights, *spectra)

    return Evolution(list(tokens), [block() for _ in range(blocks)], True)


@pytest.mark.parametrize(
    "blocks, depths", [pytest.param(1, 6, marks=pytest.mark.long), (2, 3)]
)
def test_nothing_of_a_picture_is_cut_or_overlaps(tmp_path, monkeypatch, blocks, depths):
    figures = []

    class Kept(Figure):
        def __init__(self, **options):
            super().__init__(**options)
            figures.append(self)

    monkeypatch.setattr(evolution_picture, "Figure", Kept)
    tokens = ["$x$", "a_very_long_token_name", *(f"token{i}" for i in range(98))]
    title = "A title with $two$ signs that goes on, " * 6
    text = draw(made(tokens, blocks, depths, 8), title, tmp_path / "picture.png")
    _check_picture(tmp_path / "picture.png")
    assert text.startswith(f"The first {MAX_TOKENS} of 100 tokens. Block 1: ")
    (figure,) = figures
    box = figure.get_tightbbox()
    assert box.x0 >= 0 and box.y0 >= 0
    assert box.x1 <= figure.get_figwidth() and box.y1 <= figure.get_figheight()
    assert f"The first {MAX_TOKENS} of 100 tokens." in figure.get_suptitle()
    axes = [
        axis for row in figure.subfigs for part in row.subfigs for axis in part.axes
    ]
    named = [axis for axis in axes if len(axis.get_xticklabels()) == MAX_TOKENS]
    assert len(named) == 2 * blocks
    for axis in named:
        for labels, low, high in (
            (axis.get_xticklabels(), "x0", "x1"),
            (axis.get_yticklabels()[::-1], "y0", "y1"),
        ):
            boxes = [label.get_window_extent() for label in labels]
            for one, other in zip(boxes, boxes[1:], strict=False):
                assert getattr(one, high) <= getattr(other, low) + 1
    assert [label.get_text() for label in named[0].get_xticklabels()][:3] == [
        "$x$",
        "a_very_long…",
        "token0",
    ]


@pytest.mark.filterwarnings("error")
def test_tokens_of_other_scripts_are_named_by_number(tmp_path, monkeypatch):
    """The font lacks them: they would be boxes, and the library would warn."""
    named = []
    monkeypatch.setattr(
        evolution_picture,
        "_draw_attention",
        lambda axis, attention, names: named.extend(names),
    )
    tokens = ["▁good", "中文", "हिन्दी", "é", "ท", "\n", "日本語の", "Ω", "😀", "\udcff"]
    text = draw(made(tokens, 1, 2, 2), "a title", tmp_path / "picture.png")
    first = ["▁good", "U+4E2DU+6587", "U+0939U+093…", "é", "U+0E17", "U+000A"]
    assert named == [*first, "U+65E5U+672…", "Ω", "😀", "U+DCFF"]
    assert "“हिन्दी” (token 3, ×3.5)" in text
    _check_picture(tmp_path / "picture.png")


def test_a_picture_is_described_in_words(tmp_path):
    found = made("abcdef", 1, 1, 2)
    found.blocks[0].weights[:] = [[[1, 1.5, 3, 0.75, 0.5, 1]] * 2]
    assert draw(found, "a title", tmp_path / "a.png") == (
        "Block 1: the mean weight of a token lies between 0.5 and 3 at depth 1, where "
        "1 is not re-weighted. Depth 1 weighs “c” (token 3, ×3) and “b” (token 2, "
        "×1.5) the most, and “e” (token 5, ×0.5) and “d” (token 4, ×0.75) the least."
    )
    text = evolution_picture._describe(made("abcdef", 1, 3, 2).blocks[0], "abcdef")
    assert "at depth 1, and between 0.1 and 3.5 at depth 3, where" in text
    assert "Depth 3 weighs “c” (token 3, ×3.5) and" in text


def _check_picture(path):
    assert path.stat().st_size < 400_000
    picture = imread(path)
    assert picture.shape[1] == 1400
    colors = np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)
    assert len(colors) > 200
