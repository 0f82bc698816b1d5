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


def classification(
    task: str,
    argument: str,
    default_variant: str,
    presets: Mapping[str, dict],
    model: dict,
    data: dict,
    *,
    batch_size: int,
    epochs: int,
    learning_rate_max: float,
    warmup_steps: int,
) -> ConfigDict:
    """The config of a task with classes, with Keras' own settings of Adam.

    Args:
      task: name of the config file.
      argument: "VARIANT", "VARIANT,PRESET", or "" for the defaults.
      default_variant: is taken where the argument names none.
      presets: {name: {whole name of a field: its value}}, the default first.
      model: `SMALL` or `BASE`.
      data: the `data` part.
      batch_size, epochs, learning_rate_max, warmup_steps: of the `train` part.

    Raises:
      UserError: if the variant or the preset is unknown.
    """
    train = {
        "batch_size": batch_size,
        "epochs": epochs,
        "steps": unset(int),
        "learning_rate_max": learning_rate_max,
        "warmup_steps": warmup_steps,
        "adam_beta_1": 0.9,
        "adam_beta_2": 0.999,
        "adam_epsilon": 1e-7,
        **_loop(validate_every=unset(int), keep_checkpoints=1),
    }
    parts = {"model": model, "data": data, "train": train}
    return _config(task, "classification", argument, default_variant, presets, parts)


def translation(
    task: str,
    argument: str,
    default_variant: str,
    presets: Mapping[str, dict],
    model: dict,
    data: dict,
    *,
    batch_size: int,
    steps: int,
    learning_rate_max: float,
    warmup_steps: int,
    validate_every: int,
    extra_length: int,
) -> ConfigDict:
    """The config of a translation, with Adam and the search as in the paper.

    Args:
      task, argument, default_variant, presets, model, data: as for `classification`.
      batch_size, steps, learning_rate_max, warmup_steps, validate_every: of the `train`
        part; batches are counted in sentences.
      extra_length: of the `decode` part.

    Raises:
      UserError: if the variant or the preset is unknown.
    """
    train = {
        "batch_size": batch_size,
        "batch_unit": "sentences",
        "steps": steps,
        "learning_rate_max": learning_rate_max,
        "warmup_steps": warmup_steps,
        "adam_beta_1": 0.9,
        "adam_beta_2": 0.98,
        "adam_epsilon": 1e-9,
        "label_smoothing": 0.1,
        **_loop(validate_every=validate_every, keep_checkpoints=10),
    }
    decode = {
        "beam_size": 4,
        "length_penalty": 0.6,
        "extra_length": extra_length,
        "batch_size": 64,
    }
    parts = {"model": model, "data": data, "train": train, "decode": decode}
    return _config(task, "translation", argument, default_variant, presets, parts)


def language_modelling(
    task: str,
    argument: str,
    default_variant: str,
    presets: Mapping[str, dict],
    model: dict,
    data: dict,
    train: dict,
) -> ConfigDict:
    """The config of a language model.

    Args:
      task, argument, default_variant, presets, model, data: as for `classification`.
      train: the `train` part, but for what all loops have; a batch has so many
        segments.

    Raises:
      UserError: if the variant or the preset is unknown.
    """
    train = {**_loop(validate_every=2000, keep_checkpoints=10), **train}
    decode = {
        "sliding_window": False,
        "segment_length": unset(int),
        "continuation_length": 100,
        "temperature": 1.0,
        "top_k": unset(int),
        "top_p": unset(float),
        "beam_size": unset(int),
        "batch_size": 64,
    }
    unset_fields = {"adaptive_cutoffs": unset(tuple), "initial_deviation": unset(float)}
    model = {**unset_fields, **model}
    parts = {"model": model, "data": data, "train": train, "decode": decode}
    kind = "language_modelling"
    return _config(task, kind, argument, default_variant, presets, parts)


def _loop(validate_every, keep_checkpoints):
    return {
        "init_from": unset(str),
        "accumulate_steps": 1,
        "clip_norm": unset(float),
        "schedule": unset(str),
        "validate_every": validate_every,
        "checkpoint_every": "10 minutes",
        "keep_checkpoints": keep_checkpoints,
        "steps_per_loop": unset(int),
        "deterministic": True,
        "log_every": 100,
    }


def _config(task, kind, argument, default_variant, presets, parts):
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
    model = {**variant_config(variant), **parts["model"]}
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
