"""The tables of fast weights: which runs they have, and published figures beside."""

import pytest

from configs.published import FAST_WEIGHT_PERPLEXITY
from models import build_language_model, count_parameters
from reproduction.scales import SCALES
from reproduction.scores import DIFFERS, NOT_RUN, REPRODUCED
from reproduction.tables import fast_weights
from tests import plain_text
from tests.reproduction.made_runs import (
    PAPER,
    experiments_of,
    results_of,
    rows,
    run_of,
)
from tests.scripts import script
from training.config import check

EXPERIMENTS = {one.name: one for one in experiments_of(fast_weights, PAPER)}


@pytest.mark.parametrize("scale", SCALES)
def test_every_run_is_sound(scale):
    for one in experiments_of(fast_weights, SCALES[scale]):
        check(one.make_config({"data.source": "files", "data.dir": "data"}))


def test_a_run_has_what_its_row_says():
    def config(name):
        return EXPERIMENTS[f"wikitext_103-{name}/seed-0"].make_config({})

    dpfp = config("small/transformer-delta-dpfp/256").model
    # 2 nu features for each of the 16 numbers of a head.
    assert 2 * dpfp.attention.nu * dpfp.hidden_dim // dpfp.num_heads == 256
    favor = config("medium/transformer-linear-favor/32").model.attention
    assert (favor.num_features, favor.paired) == (32, True)
    # A batch has so many parts.
    assert favor.redraw_every == 7 and favor.sum_normalisation
    normalised = config("medium/transformer-delta/no-positions-normalised").model
    assert normalised.attention.attention_normalisation
    assert normalised.positions == "none"
    undivided = config("medium/transformer-linear/undivided-no-positions-memory")
    attention = undivided.model.attention
    assert not attention.attention_normalisation and attention.sum_normalisation
    assert undivided.data.memory and undivided.model.positions == "none"
    memory = config("medium/transformer/relative-positions-memory")
    assert memory.data.memory and not memory.decode.sliding_window
    assert memory.model.positions == "relative-sinusoids"
    assert config("small/transformer").decode.sliding_window
    # The published ones.
    cutoffs = config("medium/transformer").model.adaptive_cutoffs
    assert tuple(cutoffs) == (20_000, 40_000, 200_000)
    big = EXPERIMENTS["wmt14_en_de-big/transformer-linear-dpfp/512/seed-0"]
    model = big.make_config({}).model
    assert (model.attention.nu, model.norm) == (4, "post")


def test_strengths_are_the_weights_that_the_delta_rule_has_more():
    counts = []
    for variant in ("transformer-linear", "transformer-delta"):
        one = EXPERIMENTS[f"wikitext_103-small/{variant}/seed-0"]
        config = one.make_config({})
        # Of few words, which no cutoff parts.
        model = {**config.model, "adaptive_cutoffs": None}
        counts.append(count_parameters(build_language_model(model, 9)))
    # The paper says 16 K: 16 layers, 8 heads, width 128.
    assert counts[1] - counts[0] == 16_384
    # It says 40 M.
    assert 35e6 < counts[0] + 128 * config.data.vocab_size < 45e6


def test_figures_stand_beside_the_published(tmp_path):
    near, far = (
        EXPERIMENTS[f"wikitext_103-{name}/seed-0"]
        for name in ("small/transformer", "medium/transformer-delta")
    )
    records = [
        run_of(one, {split: {"perplexity": perplexity} for split in one.splits})
        for one, perplexity in ((near, 34.0), (far, 20.0))
    ]
    bleu, perplexity = fast_weights.sheets(PAPER, results_of(records, tmp_path))
    assert {row["badge"] for row in bleu.rows} == {NOT_RUN}
    published = FAST_WEIGHT_PERPLEXITY
    assert len(perplexity.rows) == sum(map(len, published.values())) + 3
    # One run stands in two tables.
    small = rows(perplexity, size="small", model="transformer")
    assert [row["table"] for row in small] == ["2", "5"]
    for row in small:
        assert (row["badge"], row["validation_badge"]) == (REPRODUCED, DIFFERS)
        assert row["difference"] == pytest.approx(-0.1)
    found = rows(perplexity, size="medium", model="transformer-delta", options="")
    assert [row["table"] for row in found] == ["2", "3"]
    assert {row["badge"] for row in found} == {DIFFERS}


@pytest.mark.long
@pytest.mark.script
def test_a_language_model_runs(tmp_path):
    (tmp_path / "data/imdb_text").mkdir(parents=True)
    plain_text.write(tmp_path / "data/imdb_text")
    result = script(
        "reproduce.py",
        *("--table=fast-weights", "--scale=smoke", "--only=relative-positions"),
        *(f"--data_dir={tmp_path}/data", f"--output={tmp_path}/output"),
    )
    assert result.returncode == 0, result.stderr
    assert "translation was not run: --data_dir has no multi30k." in result.stdout
    row = next(x for x in result.stdout.splitlines() if "relative positions" in x)
    assert "other measure" in row
