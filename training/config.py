"""Checking, keeping and reading back the configuration of a run."""

import json
from pathlib import Path

from ml_collections import ConfigDict

import data
from models import ENCODERS
from models.time_features import FIDELITIES
from models.transevolve_encoder import ATTENTIONS, FEED_FORWARDS
from training.errors import UserError

# What may differ when a run is taken up again.
EXTENSIBLE = ("train.epochs", "train.steps", "train.keep_checkpoints")


def check(config: ConfigDict) -> None:
    """Checks the values of a config.

    Raises:
      UserError: naming the first bad field, what was expected and what was found.
    """
    choices = {
        "data.dataset": data.DATASETS,
        "data.tokenizer": data.TOKENIZERS,
        "data.on_error": ("fail", "skip"),
        "data.vocab": ("bert", "train"),
        "model.encoder": ENCODERS,
        "model.form": ATTENTIONS,
        "model.feed_forward": FEED_FORWARDS,
        "model.fidelity": FIDELITIES,
    }
    fields = flatten(config)
    for name, allowed in choices.items():
        if name in fields and fields[name] not in allowed:
            _fail(name, f"one of {', '.join(allowed)}", fields[name])
    sources = data.DATASETS[config.data.dataset].SOURCES
    if config.data.source not in sources:
        _fail("data.source", f"one of {', '.join(sources)}", config.data.source)
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


def _check_number(name, value):
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    part, field = name.rsplit(".", 1) if "." in name else ("", name)
    if field == "dropout":
        if not 0 <= value < 1:
            _fail(name, "a rate from 0 to below 1", value)
    elif field.endswith("seed") or field in ("min_length", "validation_examples"):
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


def keep(config: ConfigDict, workdir: Path) -> None:
    """Writes the config to the workdir, or checks that the same one is there.

    Raises:
      UserError: if the workdir belongs to a run with another config.
    """
    path = workdir / "config.json"
    text = json.dumps(config.to_dict(), indent=2) + "\n"
    if path.exists():
        old, new = flatten(read(workdir)), flatten(json.loads(text))
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name) and name not in EXTENSIBLE:
                raise UserError(
                    f"--workdir={workdir}: holds a run with "
                    f"config.{name}={old.get(name)}, not {new.get(name)}; give "
                    "another workdir, or the same config to go on with this run"
                )
    workdir.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def read(workdir: Path) -> ConfigDict:
    """The config of the run in a workdir.

    Raises:
      UserError: if there is none.
    """
    path = Path(workdir) / "config.json"
    if not path.exists():
        raise UserError(f"--workdir={workdir}: expected a run of train.py, found none")
    return ConfigDict(json.loads(path.read_text()))
