"""What the configs of all tasks share: sizes, the loop's settings and how a config is
put together. A file of `configs/` shows what a task has of its own."""

from collections.abc import Mapping

from ml_collections import ConfigDict, config_dict

from common.errors import UserError, known_names
from models import ARCHITECTURES, FIELDS, variant_config, variants

# Section 7.1 of the paper.
SMALL = {
    "hidden_dim": 256,
    "num_heads": 8,
    "ffn_dim": 1024,
    "dropout": 0.1,
    "dtype": "float32",
}
BASE = {**SMALL, "hidden_dim": 512, "ffn_dim": 2048}
# Adam's settings: those of Keras, and those of the paper where it translates.
KERAS_ADAM = {"adam_beta_1": 0.9, "adam_beta_2": 0.999, "adam_epsilon": 1e-7}
PAPER_ADAM = {"adam_beta_1": 0.9, "adam_beta_2": 0.98, "adam_epsilon": 1e-9}


def unset(kind: type) -> config_dict.FieldReference:
    """A field of this type that is None as long as no flag sets it."""
    return config_dict.placeholder(kind)


def reading() -> dict:
    """How any dataset is read."""
    return {
        "dir": unset(str),
        "on_error": "fail",
        "cache_dir": "~/.cache/transevolve",
    }


def segments() -> dict:
    """How a plain text is read in segments, of 256 words."""
    return {
        **reading(),
        "tokenizer": "words",
        "vocab_size": 50_000,
        # Of subwords, by --config.data.tokenizer=subwords.
        "vocab_sentences": 1_000_000,
        "vocab_file": unset(str),
        "segment_length": 256,
        "documents": unset(str),
        "memory": False,
        "memory_span": unset(int),
    }


def training(**settings) -> dict:
    """The `train` part: what the loop of every task reads, then the task's settings."""
    return {
        "init_from": unset(str),
        "accumulate_steps": 1,
        "clip_norm": unset(float),
        "schedule": unset(str),
        "validate_every": unset(int),
        "checkpoint_every": "10 minutes",
        "keep_checkpoints": 1,
        "steps_per_loop": unset(int),
        "deterministic": True,
        "log_every": 100,
        **settings,
    }


def make_config(
    task: str,
    kind: str,
    argument: str,
    default_variant: str,
    presets: Mapping[str, dict],
    *,
    model: dict,
    **parts: dict,
) -> ConfigDict:
    """The config of a task.

    Args:
      task: name of the config file.
      kind: a key of `tasks.TASKS`.
      argument: "VARIANT", "VARIANT,PRESET", or "" for the defaults.
      default_variant: is taken where the argument names none.
      presets: {name: {whole name of a field: its value}}, the default first.
      model: what the `model` part has beside the variant, such as `SMALL` or `BASE`.
      **parts: `data`, `train`, and `decode` where a task decodes.

    Raises:
      UserError: if the variant or the preset is unknown.
    """
    variant, _, preset = argument.partition(",")
    variant, preset = variant or default_variant, preset or next(iter(presets))
    for what, name, known in (
        ("variant", variant, variants()),
        ("preset", preset, presets),
    ):
        if name not in known:
            raise UserError(
                f"--config=configs/{task}.py:{argument}: expected a {what} out of "
                f"{known_names(name, known)}, found {name}"
            )
    model = {**variant_config(variant), **model}
    choices = {**FIELDS, **ARCHITECTURES[model["architecture"]].fields}
    model |= {name: unset(str) for name in choices if name not in model}
    config = ConfigDict(
        {
            "task": task,
            "kind": kind,
            "variant": variant,
            "seed": 0,
            **parts,
            "model": model,
        }
    )
    config.update_from_flattened_dict(presets[preset])
    return config
