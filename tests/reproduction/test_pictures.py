"""Pictures, and their words for who cannot see them."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from models import variants
from reporting.palette import DASHES, look
from reproduction import learning_curves as pictures
from reproduction.comparison import comparison
from reproduction.learning_curves import curve, learning_curves
from reproduction.records import survey
from reproduction.tables.long_sequences import against_length
from tests.reproduction.sample import config_of, score, write, write_several


def rows():
    """Of two models at two lengths, and a fit that has no length."""
    found = [{"benchmark": "speed_fit", "model": "transformer"}]
    for model, factor in (("transformer", 1.0), ("transevolve-fullff-1", 0.8)):
        for length in (2000, 1000):
            found.append(
                {
                    "benchmark": "speed",
                    "model": model,
                    "length": length,
                    "ratio_to_transformer": 1 / factor,
                    "peak_memory_mb": 1000 + length,
                }
            )
    return found


def test_learning_curves_are_drawn_and_told(tmp_path):
    runs = survey(write_several(tmp_path / "runs"))[0]
    listops = [run for run in runs if run.task == "listops"]
    picture = learning_curves(listops, "short", tmp_path, "curves.png")
    assert picture.file == "curves.png"
    assert (tmp_path / "curves.png").stat().st_size < 300_000
    assert imread(tmp_path / "curves.png").std() > 0.01
    configs = [config_of("listops", "transformer", seed) for seed in range(3)]
    first, last = (
        100 * sum(score(config, epoch) for config in configs) / 3 for epoch in (1, 5)
    )
    best = f"transformer ends highest, from {first:.1f} to {last:.1f} % after 5 epochs"
    assert best in picture.alternative
    assert "transevolve-fullff-2 ends highest, from" in picture.alternative  # its loss
    assert "after 3 epochs" in picture.alternative
    assert "curves of short on" in picture.caption and "band" in picture.caption
    assert picture.alternative.startswith("short. ")


def test_an_epoch_may_have_other_steps_with_another_seed():
    runs = [
        SimpleNamespace(
            validations=[
                {"step": epoch * steps, "epoch": float(epoch), "loss": 1 / epoch + seed}
                for epoch in (1, 2)
            ]
        )
        for seed, steps in enumerate((189, 190))
    ]
    points = [(1, 1.5, 1, 2), (2, 1.0, 0.5, 1.5)]
    assert curve(runs, "loss", "epoch", 1) == points


def test_one_run_has_no_band_and_counts_steps(tmp_path):
    write(tmp_path / "runs/a", config_of("multi30k", "transformer"))
    picture = learning_curves(survey(tmp_path / "runs")[0], "any", tmp_path, "a.png")
    assert "band" not in picture.caption
    assert "Validation loss: transformer goes from" in picture.alternative
    assert "after 600 steps" in picture.alternative


def test_runs_of_so_many_steps_are_compared_by_steps(tmp_path):
    """Though they log epochs: with another seed these may have other steps."""
    for seed in range(2):
        config = config_of("listops", "transformer", seed, train__steps=600)
        write(tmp_path / f"runs/{seed}", config)
    runs = survey(tmp_path / "runs")[0]
    assert all("epoch" in row for run in runs for row in run.validations)
    picture = learning_curves(runs, "any", tmp_path, "a.png")
    assert "after 600 steps" in picture.alternative and "band" in picture.caption
    (sheet,) = comparison(runs)
    titles = [column.title for column in sheet.filled]
    assert "steps" in titles and "epochs" not in titles


def test_nothing_to_draw(tmp_path):
    config = config_of("listops", "transformer")
    write(tmp_path / "a", config, epochs=0, results=False)
    assert learning_curves(survey(tmp_path)[0], "any", tmp_path, "a.png") is None


def test_the_same_runs_are_the_same_file(tmp_path):
    write(tmp_path / "runs/a", config_of("listops", "transformer"))
    runs = survey(tmp_path / "runs")[0]
    for name in ("a.png", "b.png"):
        learning_curves(runs, "any", tmp_path, name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_of_many_lines_the_best_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "MOST_LINES", 2)
    for rate in (0.1, 0.2, 0.3):
        # A folder's name in a label is no formula.
        path = f"$a_$\\frac {rate}"
        config = config_of(
            "listops",
            "transformer",
            train__learning_rate_max=rate,
            train__init_from=path,
        )
        write(tmp_path / f"runs/{rate}", config)
    picture = learning_curves(survey(tmp_path / "runs")[0], "any", tmp_path, "a.png")
    assert "The 2 best of 3 are drawn." in picture.caption
    assert "learning_rate_max 0.3" in picture.alternative
    assert "learning_rate_max 0.1" not in picture.alternative


def test_speed_and_memory_are_told(tmp_path):
    speed = against_length(rows(), "speed", tmp_path)
    assert imread(tmp_path / speed.file).std() > 0.01
    assert "Speed over the Transformer's: transformer 1.00" in speed.alternative
    assert "fullff-1 1.25 at 1,000 tokens, 1.25 at 2,000" in speed.alternative
    assert speed.caption == "Training speed: speed over the Transformer, by length."
    memory = against_length(rows(), "memory", tmp_path)
    assert "transformer 2,000 at 1,000 tokens, 3,000 at 2,000" in memory.alternative


@pytest.mark.parametrize("name", ["transformer", "unknown to this version"])
def test_a_variant_looks_alike_everywhere(name):
    assert look(name) == look(name)
    assert look(name).color == look(name, 1).color
    assert look(name) != look(name, 1)


@pytest.mark.long
def test_no_two_look_alike():
    names = [*variants(), "pytorch"]
    assert len({look(name) for name in names}) == len(names)
    # As of more forms of a model than there are dashes.
    numbers = range(len(DASHES) + 3)
    assert len({look("transformer", number) for number in numbers}) == len(numbers)


@pytest.mark.parametrize("name", [*variants(), "unknown to this version"])
def test_lines_and_names_stand_out_on_white(name):
    """At the ratios of WCAG's level AA: 3:1 of what is drawn, 4.5:1 of words."""
    assert contrast(to_rgb(look(name).color)) >= 3
    assert contrast(look(name).text_color) >= 4.5


def contrast(color):
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in color
    ]
    return 1.05 / (np.dot(linear, (0.2126, 0.7152, 0.0722)) + 0.05)
