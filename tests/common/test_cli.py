"""Command lines that are wrong end with one line that says where."""

import pytest
from absl import flags
from ml_collections import config_flags

from common.cli import parse_flags
from common.errors import UserError
from training import config as configuration

LISTOPS = "configs/listops.py:transevolve-fullff-1"


def parse(*arguments, config=LISTOPS):
    """The config of a train.py command line, checked."""
    argv = ["train.py", f"--config={config}", *arguments]
    values = flags.FlagValues()
    defined = config_flags.DEFINE_config_file(
        "config", flag_values=values, sys_argv=argv
    )
    assert parse_flags(argv, values) == ["train.py"]
    configuration.check(defined.value)
    return defined.value


@pytest.mark.parametrize(
    "flag, message",
    [
        ("data.colour=1", "data.colour: expected a field of the config, found none"),
        ("colour.data=1", "colour.data: expected a field of the config, found none"),
        ("seed.colour=1", "seed.colour: expected a field of the config, found none"),
        ("train.batch_size=0", "train.batch_size: expected a whole number from 1"),
        (
            "train.batch_size=99999999999999999999",
            "train.batch_size: expected a whole number from 1 to 1,000,000, found",
        ),
        ("data.max_depth=40", "data.max_depth: expected a whole number from 1 to 20,"),
        ("data.source=ftp", "data.source: expected one of generate, files"),
        ("data.on_error=ask", "data.on_error: expected one of fail, skip"),
        ("data.bucket_lengths=(9,)", "data.bucket_lengths: expected increasing len"),
        ("data.bucket_lengths=(9,2000,9)", "data.bucket_lengths: expected increasing"),
        ("data.bucket_lengths=(-9,2000)", "data.bucket_lengths: expected increasing"),
        ("data.bucket_lengths=(9.5,2000)", "data.bucket_lengths: expected increasing"),
        ("data.bucket_lengths=(True,2000)", "data.bucket_lengths: expected increas"),
        ("data.bucket_lengths=()", "data.bucket_lengths: expected increasing"),
        ("data.bucket_lengths=many", "data.bucket_lengths: expected increasing"),
        ("data.max_length=0", "data.max_length: expected a whole number from 1"),
        ("model.attention.name=fast", "model.attention.name: expected factored, the"),
        ("model.dropout=1.5", "model.dropout: expected a rate from 0 to 0.999999"),
        ("model.dropout=nan", "model.dropout: expected a rate from 0 to 0.999999"),
        ("model.hidden_dim=100", "model.hidden_dim: expected a multiple of twice"),
        ("data.validation_examples=0", "data.validation_examples: expected a whole"),
        ("data.max_arguments=18", "data.max_arguments: expected at most 17 with data"),
        ("data.max_arguments=1001", "data.max_arguments: expected a whole number fro"),
        ("data.min_length=1999", "data.min_length: expected at least 2 below"),
        ("data.tokenizer=wordpiece", "data.tokenizer: expected one of symbols"),
        ("model.architecture=transformer", "model.architecture: expected one of tran"),
        ("train.adam_beta_1=1.5", "train.adam_beta_1: expected a rate from 0"),
        ("seed=5000000000", "seed: expected a whole number from 0 to 2,147,483,647"),
        ("kind=translation", "data.dataset: expected one of parallel_text, found"),
        ("train.learning_rate_max=1e-320", "train.learning_rate_max: expected a numb"),
        ("train.adam_epsilon=1e308", "train.adam_epsilon: expected a number from 1e-1"),
        ("train.adam_epsilon=1e-320", "train.adam_epsilon: expected a number from 1e"),
        ("train.clip_norm=1e-40", "train.clip_norm: expected a number from 1e-06 to"),
        ("train.adam_beta_1=0.99999999999", "train.adam_beta_1: expected a rate from"),
        ("model.num_depths=2147483647", "model.num_depths: expected a whole number fr"),
        ("model.num_depths=257", "model.num_depths: expected a whole number from 1 "),
        ("train.accumulate_steps=65", "train.accumulate_steps: expected at most the 6"),
        ("train.accumulate_steps=2147483647", "train.accumulate_steps: expected a wh"),
        ("train.checkpoint_every=9999999999 steps", "train.checkpoint_every: expected"),
        ("kind=other", "kind: expected one of classification, language_modelling, "),
        (
            "variant=transformr",
            "variant: expected one of transformer, transformer-",
        ),
    ],
)
def test_a_bad_field_is_named(flag, message):
    with pytest.raises(UserError) as error:
        parse(f"--config.{flag}")
    assert str(error.value).startswith(f"--config.{message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("flag", ["train.steps=many", "train.batch_size=1.5"])
def test_what_absl_refuses_is_in_its_words(flag):
    with pytest.raises(UserError, match=f"^flag --config.{flag}: invalid literal"):
        parse(f"--config.{flag}")


def test_of_a_flag_that_is_given_twice_the_last_one_counts():
    assert parse("--config.seed=1", "--config.seed=2").seed == 2
    # ml_collections strings the lengths together.
    with pytest.raises(UserError, match="bucket_lengths: expected increasing"):
        parse(*["--config.data.bucket_lengths=(9,2000)"] * 2)


@pytest.mark.parametrize(
    "config, message",
    [
        ("configs/imdb.py:bert", "--config=configs/imdb.py:bert: expected a variant"),
        ("configs/imdb.py:transformer,phone", "a preset out of paper, laptop, found"),
        ("configs/wmt14_en_de.py:transformer,laptop", "a preset out of paper, found"),
        ("configs/none.py", "configs/none.py"),
        ("", "Path to config file is an empty string"),
    ],
)
def test_a_bad_config_is_named(config, message):
    for flag in ([], ["--config.seed=1"]):
        with pytest.raises(UserError) as error:
            parse(*flag, config=config)
        assert message in str(error.value) and "\n" not in str(error.value)


def test_flags_of_another_variant_are_refused():
    flag = "--config.model.num_layers=3"
    with pytest.raises(UserError, match="num_layers: expected a field"):
        parse(flag)
    config = parse(flag, config="configs/listops.py:transformer")
    assert config.model.num_layers == 3


def test_blocks_and_depths_are_bounded_together():
    flags = ("--config.model.num_blocks=20", "--config.model.num_depths=12")
    assert parse(*flags).model.num_depths == 12
    message = "num_depths: expected at most 12 in each of model.num_blocks=20, found 13"
    with pytest.raises(UserError, match=message):
        parse(*flags, "--config.model.num_depths=13")


@pytest.mark.parametrize(
    "flag",
    ["train.adam_epsilon=1e-9", "train.adam_beta_1=0", "train.clip_norm=0.001"],
)
def test_usual_values_are_accepted(flag):
    parse(f"--config.{flag}")


def test_buckets_follow_the_length():
    config = parse("--config.data.max_length=1100")
    assert config.data.bucket_lengths == (768, 1024, 1100)
    given = "--config.data.bucket_lengths=(600,1100)"
    config = parse("--config.data.max_length=1100", given)
    assert config.data.bucket_lengths == (600, 1100)


def test_presets_and_flags_come_together():
    config = parse("--config.train.epochs=3", config=f"{LISTOPS},laptop")
    assert (config.train.epochs, config.train.warmup_steps) == (3, 100)
    assert config.data.max_length == 40
