"""Evolved attention beside attention that is computed anew."""

import numpy as np
import pytest
from matplotlib.image import imread

from analysis import drift as drifts
from analysis.drift import ALONE, EVOLVED, FITTED, draw, drift
from common.errors import UserError
from evaluation.run import load_run
from models.convert import with_attention
from tests import runs, scripts
from tests.models.builders import numpy, randomize
from tests.models.forms import equation_9


def open_run(folder, variant, **changes):
    config = scripts.listops_config(folder / "cache", variant, **changes)
    return load_run(runs.untrained(config, folder / "run"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant, step",
    [
        ("transevolve-randomff-2", "euler"),
        ("transevolve-fullff-1", "euler"),
        ("transevolve-fullff-1", "rk4"),
        ("transevolve-fullff-1", "strang"),
    ],
)
def test_rows_are_those_of_equation_9(tmp_path, monkeypatch, variant, step):
    """Of a depth's own input, and of the block's, at each depth."""
    changes = {"model.num_depths": 2, "model.residual_step": step}
    run = open_run(tmp_path, variant, **changes)
    compared = []

    def distance(rows, exact):
        compared.append((rows, exact))
        return np.zeros(len(rows))

    monkeypatch.setattr(drifts, "distance", distance)
    randomize(run.model)
    drift(run, 1)
    (ids,) = drifts._texts(run, 1)
    model = with_attention(run.model, "literal")
    x, compared = model.embedding(ids[None]), iter(compared)
    mask = np.ones((1, len(ids)), bool)
    for block in model.encoder.layers:
        start, read = numpy(x), block.attention(x, x).read
        for depth in range(block.num_depths):
            evolved, exact = next(compared)
            next(compared), next(compared)
            for rows, inputs in ((evolved, start), (exact, numpy(x))):
                inputs = inputs.astype("float64")
                by_head = inputs[0].reshape(len(ids), block.num_heads, -1)
                attended = np.einsum("hij,jhd->ihd", rows, by_head)
                expected = equation_9(block.attention, inputs, mask, depth)[0]
                np.testing.assert_allclose(
                    attended.reshape(expected.shape), expected, atol=2e-5
                )
            x = block.move(depth, x, read)
        x = block.output_norm(x)
    assert not list(compared)


@pytest.mark.slow
def test_it_grows_from_nothing(tmp_path):
    run = open_run(tmp_path, "transevolve-fullff-2", **{"model.num_depths": 3})
    randomize(run.model)
    measured = drift(run, 2)
    assert set(measured) == {EVOLVED, ALONE, FITTED}
    evolved = measured[EVOLVED]
    assert evolved.shape == (2, 3, 2, 2)
    np.testing.assert_allclose(evolved[:, 0], 0, atol=1e-6)
    assert evolved[:, 1:].min() > 1e-3 and measured[ALONE].min() > 1e-3
    # What w alone can do is done.
    np.testing.assert_allclose(measured[FITTED][:, 0], 0, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [None, "post"])
def test_a_transformer_has_the_rows_that_it_reads(tmp_path, monkeypatch, norm):
    changes = {"model.num_layers": 2, "model.norm": norm}
    run = open_run(tmp_path, "transformer", **changes)
    model, rows = randomize(run.model), []
    monkeypatch.setattr(drifts, "distance", lambda _, exact: rows.append(exact) or 0)
    measured = drift(run, 1)
    assert set(measured) == {ALONE, FITTED}
    (ids,) = drifts._texts(run, 1)
    x = model.embedding(ids[None])
    for layer, exact in zip(model.encoder.layers, rows[::2], strict=True):
        seen = x if norm == "post" else layer.attention_norm(x)
        *_, values = np.split(numpy(layer.attention.query_key_value(seen)), 3, axis=-1)
        by_head = values[0].reshape(len(ids), layer.num_heads, -1)
        expected = numpy(layer.attention(seen, seen).read(0, None))[0]
        merged = np.einsum("hij,jhd->ihd", exact, by_head).reshape(expected.shape)
        np.testing.assert_allclose(merged, expected, atol=1e-5)
        x = layer(x)


def test_fitted_weights_are_recovered():
    random = np.random.default_rng(0)
    start = random.dirichlet(np.ones(6), (3, 6))
    exact = start * random.uniform(0.2, 3, (3, 1, 6))
    exact /= exact.sum(-1, keepdims=True)
    fitted = drifts.fitted(start, exact)
    assert drifts.distance(start, exact).min() > 0.1
    np.testing.assert_allclose(drifts.distance(fitted, exact), 0, atol=1e-3)


def test_a_picture_and_a_table(tmp_path):
    random = np.random.default_rng(0)
    names = (EVOLVED, ALONE, FITTED)
    measured = {name: random.uniform(0, 1, (2, 3, 4, 5)) for name in names}
    table = draw(measured, "a run", tmp_path / "drift.png")
    assert imread(tmp_path / "drift.png").std() > 0
    last = table.splitlines()[-1]
    assert f"{measured[EVOLVED][1, 2].mean():.3f}" in last and "| 2 | 3 |" in last


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant, changes, message",
    [
        (
            "transevolve-fullff-1-linear",
            {},
            "expected a TransEvolve run with a softmax",
        ),
        ("transformer-linear", {}, "expected a Transformer with a softmax"),
        ("transformer", {"model.residuals": "reversible"}, "usual residuals"),
        ("transevolve-fullff-1", {"model.positions": "rotary"}, "in the embedding"),
    ],
)
def test_others_are_refused(tmp_path, variant, changes, message):
    with pytest.raises(UserError, match=message):
        drift(open_run(tmp_path, variant, **changes), 1)
