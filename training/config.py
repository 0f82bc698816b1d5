"""Checking, keeping and reading back the configuration of a run."""

import json
import math
from pathlib import Path

from ml_collections import ConfigDict

from configs.common import VARIANTS
from data import DATASETS, parallel_text
from data.buckets import BATCH_UNITS
from models.time_features import FIDELITIES
from models.transevolve_block import ATTENTIONS, FEED_FORWARDS
from training.errors import UserError

# What may differ when a run is taken up again: how long it is, where its data lies, how
# it decodes; and what becomes of bad rows, since one of them may have ended the run.
CHANGEABLE = (
    "train.epochs",
    "train.steps",
    "train.keep_checkpoints",
    "data.dir",
    "data.cache_dir",
    "data.on_error",
    "decode.beam_size",
    "decode.length_penalty",
    "decode.extra_length",
    "decode.batch_size",
)


def check(config: ConfigDict) -> None:
    """Checks the values of a config.

    Raises:
      UserError: naming the first bad field, what was expected and what was found.
    """
    choices = {
        "variant": VARIANTS,
        "data.dataset": [*DATASETS, "parallel_text"],
        "data.on_error": ("fail", "skip"),
        "data.vocab": ("bert", "train"),
        "model.dtype": ("float32", "mixed_bfloat16"),
        "model.form": ATTENTIONS,
        "model.feed_forward": FEED_FORWARDS,
        "model.fidelity": FIDELITIES,
        "train.batch_unit": BATCH_UNITS,
    }
    fields = flatten(config)
    for name, allowed in choices.items():
        if name in fields and fields[name] not in allowed:
            _fail(name, f"one of {', '.join(allowed)}", fields[name])
    dependent = {
        **_data_choices(config.data),
        "model.encoder": [VARIANTS[config.variant]["encoder"]],
    }
    for name, allowed in dependent.items():
        if fields[name] not in allowed:
            _fail(name, f"one of {', '.join(allowed)}", fields[name])
    for name, value in fields.items():
        _check_number(name, value)
    lengths = tuple(config.data.bucket_lengths)
    limit = config.data.max_length
    if not lengths or lengths[-1] != limit or list(lengths) != sorted(set(lengths)):
        expected = f"increasing lengths that end at data.max_length={limit}"
        _fail("data.bucket_lengths", expected, lengths)
    if config.model.hidden_dim % (2 * config.model.num_heads):
        expected = f"a multiple of twice model.num_heads={config.model.num_heads}"
        _fail("model.hidden_dim", expected, config.model.hidden_dim)
    if fields.get("model.feed_forward") == "rotation" and config.model.ffn_dim % 2:
        _fail("model.ffn_dim", "an even number", config.model.ffn_dim)
    if config.data.dataset == "parallel_text":
        if limit < 2:
            _fail("data.max_length", "at least 2: a subword and the end", limit)
        if config.data.source_language == config.data.target_language:
            expected = "another language than data.source_language"
            _fail("data.target_language", expected, config.data.target_language)
        if config.train.batch_unit == "tokens" and config.train.batch_size < limit:
            expected = f"at least data.max_length={limit} tokens"
            _fail("train.batch_size", expected, config.train.batch_size)
    if config.data.dataset == "listops":
        if config.data.min_length + 1 >= limit:
            expected = f"at least 2 below data.max_length={limit}"
            _fail("data.min_length", expected, config.data.min_length)
        if config.data.max_arguments < 2:
            _fail("data.max_arguments", "at least 2", config.data.max_arguments)


def _data_choices(config):
    if config.dataset == "parallel_text":
        return {"data.source": parallel_text.SOURCES, "data.tokenizer": ["subwords"]}
    module = DATASETS[config.dataset]
    tokenizers = ["bytes"]
    tokenizers += ["symbols"] * hasattr(module, "SYMBOLS")
    tokenizers += ["wordpiece"] * ("vocab" in config)
    return {"data.source": module.SOURCES, "data.tokenizer": tokenizers}


def _check_number(name, value):
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if not math.isfinite(value):
        _fail(name, "a finite number", value)
    part, field = name.rsplit(".", 1) if "." in name else ("", name)
    if field in ("dropout", "adam_beta_1", "adam_beta_2", "label_smoothing"):
        if not 0 <= value < 1:
            _fail(name, "a rate from 0 to below 1", value)
    elif field.endswith("seed"):
        if not 0 <= value < 2**31:
            _fail(name, "a number from 0 to below 2^31", value)
    elif field in ("min_length", "length_penalty", "extra_length"):
        if value < 0:
            _fail(name, "a number from 0", value)
    elif value <= 0:
        _fail(name, "a number above 0", value)


def _fail(name, expected, found):
    raise UserError(f"--config.{name}: expected {expected}, found {found}")


def flatten(config) -> dict:
    """{"data.source": "tfds", ...} of a nested config."""
    flat = {}
    for name, value in config.items():
        if isinstance(value, ConfigDict | dict):
            flat.update((f"{name}.{key}", v) for key, v in flatten(value).items())
        else:
            flat[name] = value
    return flat


def differences(config: ConfigDict, workdir: Path) -> list[str]:
    """Names of the fields in which the config in a workdir is another one.

    Raises:
      UserError: if there is none.
    """
    old, new = flatten(read(workdir)), flatten(json.loads(_json(config)))
    names = sorted(old.keys() | new.keys())
    return [name for name in names if old.get(name) != new.get(name)]


def check_same_run(config: ConfigDict, workdir: Path) -> None:
    """Checks that a run in the workdir can go on with this config.

    Raises:
      UserError: if it differs in more than `CHANGEABLE`.
    """
    for name in differences(config, workdir):
        if name not in CHANGEABLE:
            old, new = flatten(read(workdir)).get(name), flatten(config).get(name)
            raise UserError(
                f"--workdir={workdir}: holds a run with config.{name}={old}, not "
                f"{new}; give another workdir, or the same config to go on with it"
            )


def keep(config: ConfigDict, workdir: Path) -> None:
    """Writes the config to the workdir."""
    workdir.mkdir(parents=True, exist_ok=True)
    (workdir / "config.json").write_text(_json(config))


def _json(config):
    config = config.to_dict()
    # So that evaluation finds the data from another folder, too.
    if config["data"]["dir"]:
        config["data"]["dir"] = str(Path(config["data"]["dir"]).expanduser().resolve())
    return json.dumps(config, indent=2) + "\n"


def read(workdir: Path) -> ConfigDict:
    """The config of the run in a workdir.

    Raises:
      UserError: if there is none.
    """
    path = Path(workdir) / "config.json"
    if not path.exists():
        raise UserError(f"--workdir={workdir}: expected a run of train.py, found none")
    return ConfigDict(json.loads(path.read_text()))
