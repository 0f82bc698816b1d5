"""Configs: the paper's settings are the defaults, for every task and variant."""

import importlib

import pytest

from configs.common import VARIANTS
from training import config as configuration

PAPER = {
    "ag_news": {"train.batch_size": 80, "data.max_length": 512},
    "imdb": {"train.batch_size": 80, "data.max_length": 512},
    "listops": {
        "train.batch_size": 64,
        "data.min_length": 500,
        "data.max_length": 2000,
        "data.train_examples": 96000,
    },
    "char_imdb": {"train.batch_size": 48, "data.max_length": 4000},
}
ALL_TASKS = {
    "model.hidden_dim": 256,
    "model.num_heads": 8,
    "model.ffn_dim": 1024,
    "model.dropout": 0.1,
    "train.epochs": 15,
    "train.learning_rate_max": 0.5,
    "train.warmup_steps": 8000,
    "train.adam_beta_1": 0.9,
    "train.adam_beta_2": 0.999,
    "train.adam_epsilon": 1e-7,
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("task", PAPER)
def test_defaults_are_the_papers(task, variant):
    config = importlib.import_module(f"configs.{task}").get_config(variant)
    configuration.check(config)
    fields = configuration.flatten(config)
    for name, value in {**ALL_TASKS, **PAPER[task]}.items():
        assert fields[name] == value, name
    assert fields["task"] == task
    if variant == "transformer":
        assert fields["model.num_layers"] == 6
    else:
        assert fields["model.num_blocks"] * fields["model.num_depths"] == 6
        assert fields["model.num_blocks"] == int(variant[-1])
        assert fields["model.fidelity"] == "paper"


def test_config_survives_the_workdir(tmp_path):
    config = importlib.import_module("configs.imdb").get_config()
    configuration.keep(config, tmp_path)
    again = configuration.read(tmp_path)
    configuration.check(again)
    assert not configuration.differences(config, tmp_path)
    configuration.check_same_run(config, tmp_path)
    config.seed = 1
    assert configuration.differences(config, tmp_path) == ["seed"]
    assert again.data.vocab_file is None
    assert tuple(again.data.bucket_lengths) == config.data.bucket_lengths
