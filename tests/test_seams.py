"""A toy attention, model, dataset and task pass through everything that exists."""

import json

import numpy as np
import pytest

from benchmarks import decode, params, speed
from benchmarks import models as compared
from common.errors import UserError
from configs import listops, multi30k
from configs import shared as configs_shared
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from models import variants
from reporting.evaluation import markdown
from tests import toys
from tests.shallow import shallow_variant
from tests.translation import FLAGS, write
from training.config import check, declared
from training.train import train_and_evaluate

pytestmark = pytest.mark.slow

LISTOPS = {
    "model.hidden_dim": 16,
    "model.num_heads": 2,
    "model.ffn_dim": 32,
    "data.min_length": 5,
    "data.max_length": 24,
    "data.max_depth": 3,
    "data.max_arguments": 4,
    "data.train_examples": 60,
    "data.validation_examples": 20,
    "data.test_examples": 20,
    "train.batch_size": 10,
    "train.epochs": 1,
}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    toys.register(monkeypatch)
    toys.register_attention(monkeypatch)
    for module in (compared, configs_shared):
        monkeypatch.setattr(module, "variant_config", shallow_variant)
    monkeypatch.setattr(speed, "PEAK_SIZE", 256)


def run(config, folder):
    """Trains and evaluates as the scripts do; returns the result and its Markdown."""
    with config.unlocked():
        config.data.cache_dir = str(folder / "cache")
    reached = train_and_evaluate(config, folder / "run")
    assert reached["step"] > 0
    result, found = evaluate(folder / "run")
    assert json.loads((folder / "run/results/test.json").read_text()) == result
    return result, markdown(found)


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param("transevolve-fullff-1-cosine-sharp", marks=pytest.mark.long),
        *("transformer-cosine", "bag-8"),
    ],
)
def test_a_toy_model_classifies(variant, tmp_path):
    config = listops.get_config(variant)
    config.update_from_flattened_dict(LISTOPS)
    result, table = run(config, tmp_path)
    assert result["variant"] == variant and result["examples"] == 20
    assert "| class |" in table
    (answer,) = load_run(tmp_path / "run").predict(["[MAX 1 2 ]"])
    assert answer.label in "0123456789"
    assert sum(answer.scores.values()) == pytest.approx(1, abs=1e-5)


def test_a_toy_attentions_hyperparameters_are_fields():
    config = listops.get_config("transevolve-fullff-1-cosine")
    attention = config.model.attention
    assert attention.to_dict() == {"name": "cosine", "temperature": 5.0}
    attention.temperature = -1.0
    with pytest.raises(UserError, match="attention.temperature: expected a number"):
        check(config)
    assert "model.attention.temperature" in declared(config)


@pytest.mark.long
def test_a_toy_attention_translates(tmp_path):
    write(tmp_path)
    config = multi30k.get_config("transevolve-fullff-1-cosine")
    config.update_from_flattened_dict(
        {
            **FLAGS,
            "data.bucket_lengths": (24,),
            "data.dir": str(tmp_path),
            "train.steps": 10,
            "train.validate_every": 10,
        }
    )
    result, table = run(config, tmp_path)
    assert result["examples"] == 20 and "| bleu_13a |" in table


def test_a_toy_task_reads_a_toy_dataset(tmp_path):
    config = toys.counting_config()
    result, table = run(config, tmp_path)
    assert result["examples"] == 40 and "| split | perplexity |" in table
    assert result["perplexity"] < 10  # it has learned that digits and spaces take turns
    assert load_run(tmp_path / "run").predict(["1 2 3"]) == [" "]


def test_parameters_of_toys_are_counted(monkeypatch):
    names = ["bag-8", "transevolve-fullff-2-cosine"]
    monkeypatch.setattr(params, "variants", lambda: names)  # the others take long
    rows = list(params.measure())
    assert not any("published" in row for row in rows)
    tasks = {
        name: {row["task"] for row in rows if row["model"] == name} for name in names
    }
    classification = {"ag_news", "imdb", "listops", "char_imdb"}
    assert tasks["bag-8"] == classification
    assert tasks["transevolve-fullff-2-cosine"] == classification | {"wmt14"}


def test_toys_are_timed():
    names = ["bag-8", "transevolve-fullff-1-cosine"]
    rows = list(speed.measure(names, [8], tokens_per_batch=16, rounds=1))
    assert [row["model"] for row in rows] == names
    # At few tokens a bag of words has no operations but those of pooling and logits.
    assert "gflop" in rows[0] and rows[1]["gflop"] > 0


def test_a_toys_slots_are_decoded(monkeypatch):
    monkeypatch.setattr(decode, "VOCABULARY_SIZE", 50)
    name = "transevolve-fullff-1-cosine"
    (row,) = decode.measure([name], [20], "small", 2, 2, 5, rounds=1)
    assert row["cache_bytes_per_token"] > 0
    assert np.isfinite(row["ratio_to_recomputing"])
    with pytest.raises(UserError, match="--models: expected some of"):
        list(decode.measure(["bag-8"], [20]))


def test_toys_are_not_the_papers():
    assert {"bag-8", "transevolve-fullff-1-cosine-sharp"} <= set(
        variants(in_paper=False)
    )
    assert len(variants(in_paper=True)) == 5
