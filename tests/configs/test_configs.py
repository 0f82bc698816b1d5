"""Configs: the paper's settings are the defaults, for every task and variant."""

import importlib

import pytest

from common.errors import UserError
from configs import listops
from models import (
    can_decode,
    can_encode,
    can_model_language,
    variant_config,
    variants,
)
from training import config as configuration

VARIANTS = variants(in_paper=True)

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
TRANSLATION = {
    "wmt14_en_de": {"data.target_language": "de", "decode.extra_length": 50},
    "wmt14_en_fr": {"data.target_language": "fr", "decode.extra_length": 35},
}
ALL_TRANSLATION = {
    "model.hidden_dim": 512,
    "model.num_heads": 8,
    "model.ffn_dim": 2048,
    "model.dropout": 0.1,
    "data.source": "tfds",
    "data.source_language": "en",
    "data.validation_name": "newstest2013",
    "data.test_name": "newstest2014",
    "data.vocab_size": 32_000,
    "data.max_length": 256,
    "train.batch_size": 512,
    "train.batch_unit": "sentences",
    "train.steps": 300_000,
    "train.learning_rate_max": 1.5,
    "train.warmup_steps": 16_000,
    "train.adam_beta_1": 0.9,
    "train.adam_beta_2": 0.98,
    "train.adam_epsilon": 1e-9,
    "train.label_smoothing": 0.1,
    "train.validate_every": 2000,
    "train.keep_checkpoints": 10,
    "decode.beam_size": 4,
    "decode.length_penalty": 0.6,
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("task", TRANSLATION)
def test_translation_defaults_are_the_papers(task, variant):
    config = importlib.import_module(f"configs.{task}").get_config(variant)
    configuration.check(config)
    fields = configuration.flatten(config)
    for name, value in {**ALL_TRANSLATION, **TRANSLATION[task]}.items():
        assert fields[name] == value, name
    assert fields["task"] == task
    assert fields["data.tfds_name"].endswith(f"{fields['data.target_language']}-en")
    assert "train.epochs" not in fields


def test_small_translation_has_the_fields_of_the_large_one():
    config = importlib.import_module("configs.multi30k").get_config()
    configuration.check(config)
    fields = configuration.flatten(config)
    assert fields["model.hidden_dim"] == 256
    assert fields["data.source"] == "files"
    wmt = importlib.import_module("configs.wmt14_en_de").get_config()
    assert fields.keys() == configuration.flatten(wmt).keys()


@pytest.mark.parametrize("task", ["ag_news", "wmt14_en_de"])
def test_an_unknown_variant_is_refused(task):
    module = importlib.import_module(f"configs.{task}")
    with pytest.raises(UserError, match=f"configs/{task}.py:other: expected a variant"):
        module.get_config("other")


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


TASKS = [*PAPER, *TRANSLATION, "multi30k"]


def can_learn(task, variant):
    can = can_encode if task in PAPER else can_decode
    return can(variant_config(variant))


@pytest.mark.parametrize("task", TASKS)
def test_every_preset_of_every_variant_is_sound(task):
    module = importlib.import_module(f"configs.{task}")
    assert next(iter(module.PRESETS)) == "paper"
    for variant in variants():
        if not can_learn(task, variant):
            continue
        for preset, changes in module.PRESETS.items():
            config = module.get_config(f"{variant},{preset}")
            configuration.check(config)
            fields = configuration.flatten(config)
            assert all(fields[name] == value for name, value in changes.items())
            # What the preset says is what is used.
            assert config.data.bucket_lengths[-1] == config.data.max_length


LANGUAGE = ["plain_text", "wikitext_103"]


@pytest.mark.parametrize("task", LANGUAGE)
def test_every_preset_of_every_language_model_is_sound(task):
    module = importlib.import_module(f"configs.{task}")
    for variant in variants():
        if can_model_language(variant_config(variant)):
            for preset in module.PRESETS:
                configuration.check(module.get_config(f"{variant},{preset}"))


@pytest.mark.parametrize("task", [*TRANSLATION, *LANGUAGE])
def test_a_variant_that_cannot_learn_it_is_refused(task):
    module, refused = importlib.import_module(f"configs.{task}"), set()
    can = can_model_language if task in LANGUAGE else can_decode
    for variant in variants():
        if not can(variant_config(variant)):
            with pytest.raises(UserError, match=r"^--config\.[a-z.]+: expected "):
                configuration.check(module.get_config(variant))
            refused.add(variant)
    assert {"bag-of-words", "transformer-big-bird"} <= refused


def test_a_translator_does_not_read_its_source_undivided():
    module = importlib.import_module("configs.multi30k")
    config = module.get_config("transformer-linear")
    configuration.check(config)
    config.model.attention.attention_normalisation = False
    with pytest.raises(UserError, match="attention_normalisation: expected True in"):
        configuration.check(config)


@pytest.mark.parametrize("task", [*TASKS, *LANGUAGE])
def test_the_file_says_how_to_run_it(task):
    module = importlib.import_module(f"configs.{task}")
    assert f"--config=configs/{task}.py:VARIANT" in module.__doc__
    assert all(f"`{preset}`" in module.__doc__ for preset in module.PRESETS)


def test_a_config_shares_no_field_with_another():
    module = importlib.import_module("configs.imdb")
    config = module.get_config()
    config.train.steps, config.data.dir = 5, "here"
    config.model.num_heads = 4
    other = module.get_config()
    assert (other.train.steps, other.data.dir) == (None, None)
    assert other.train.validate_every is None and other.model.num_heads == 8


def test_a_field_that_nothing_reads_is_refused():
    config = importlib.import_module("configs.imdb").get_config()
    with config.unlocked():
        config.train.weight_decay = 0.0
    with pytest.raises(UserError, match="train.weight_decay: expected no field of tha"):
        configuration.check(config)


@pytest.mark.parametrize(
    "buckets, chunk, message",
    [
        (7, 64, "an even whole number from 2 to 65,536, or unset, found 7"),
        (
            16_000,
            64,
            "at most 10,737 at data.max_length=100,000 and model.attention.chunk=64, "
            "found 16000",
        ),
        # A query of a larger bucket and a place would be taken for its neighbour's.
        (5000, 8191, "at most 2,035 at data.max_length=100,000 and model.attention."),
    ],
)
def test_other_numbers_of_buckets_are_refused_by_a_reformer(buckets, chunk, message):
    config = listops.get_config("transformer-reformer")
    config.data.max_length = 100_000
    config.data.bucket_lengths = (100_000,)
    config.model.attention.update(buckets=buckets, chunk=chunk)
    with pytest.raises(UserError, match=f"model.attention.buckets: expected {message}"):
        configuration.check(config)


def test_a_field_that_is_missing_is_named():
    config = importlib.import_module("configs.imdb").get_config()
    with config.unlocked():
        del config.train.batch_size
    with pytest.raises(UserError, match="train.batch_size: expected a whole number"):
        configuration.check(config)


def test_a_tokenizer_may_leave_fields_of_another_unread():
    config = importlib.import_module("configs.imdb").get_config()
    config.data.tokenizer = "bytes"
    configuration.check(config)


def test_buckets_are_fitted_where_the_config_is_used():
    config = importlib.import_module("configs.imdb").get_config()
    config.data.max_length = 100
    configuration.check(config)
    assert config.data.bucket_lengths == (64, 100)
