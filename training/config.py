"""Checking the configuration of a run."""

from collections.abc import Mapping

from ml_collections import ConfigDict

import data
import models
from common import fields
from common.errors import known_names
from common.fields import (
    Field,
    below,
    boolean,
    changeable,
    choice,
    fail,
    fixed,
    integer,
    interval,
    optional,
    rate,
    real,
    text,
)
from data import FIELDS as DATA_FIELDS
from data.buckets import fit_buckets
from data.tokenizers import TOKENIZERS
from tasks import TASKS

# What every config holds; the rest is declared by what reads it. How long a run is may
# change when it is taken up again.
FIELDS = {
    "task": text("Name of the config file, and of the task in results."),
    "kind": text("What is learned: a key of `tasks.TASKS`."),
    "variant": text("The model; the first part of the config's argument."),
    "model.architecture": text("A key of `models.ARCHITECTURES`, the variant's."),
    "data.dataset": text("A key of `data.DATASETS`."),
    "data.tokenizer": text("A key of `data.tokenizers.TOKENIZERS`."),
    "seed": integer(
        "Of weights, dropout, shuffling and the validation cut.", 0, 2**31 - 1
    ),
    "train.batch_size": integer(
        "Examples, or tokens of a side, of a batch.", maximum=1_000_000
    ),
    "train.epochs": changeable(optional(integer("Passes over the training data."))),
    "train.steps": changeable(
        optional(integer("Updates. Given, they count instead of epochs."))
    ),
    "train.learning_rate_max": real(
        "lr = learning_rate_max / √d · min(step^-0.5, step · warmup_steps^-1.5).",
        1e-10,
        1e10,
    ),
    "train.schedule": optional(
        choice(
            "How the rate falls; as that formula if unset. cosine: it grows to "
            "learning_rate_max itself, and falls to 0 at train.steps.",
            "cosine",
        )
    ),
    "train.warmup_steps": integer(
        "Updates over which the rate grows.", maximum=10_000_000
    ),
    "train.adam_beta_1": rate("Adam's β1."),
    "train.adam_beta_2": rate("Adam's β2."),
    "train.adam_epsilon": real("Adam's ε.", 1e-16, 1),
    # A run that goes on does not read it.
    "train.init_from": changeable(
        optional(
            text("A workdir whose best weights a new run starts from, those that fit.")
        )
    ),
    "train.accumulate_steps": integer(
        "Microbatches that a device takes one after the other, to save memory.",
        maximum=10_000,
    ),
    "train.clip_norm": optional(
        real(
            "The longest that the gradient of an update may be; it is cut to it.",
            1e-6,
            1e10,
        )
    ),
    "train.validate_every": optional(
        integer("Updates between validations; by default an epoch.")
    ),
    "train.checkpoint_every": changeable(
        interval("What is lost at most when a run is killed, in updates or in time.")
    ),
    "train.keep_checkpoints": changeable(
        integer("Checkpoints of validations that are kept, beside the best one.")
    ),
    "train.steps_per_loop": optional(
        integer("Updates between returns to Python; by default what suits the device.")
    ),
    "train.deterministic": boolean(
        "Whether two runs are alike to the bit; without, some devices are faster."
    ),
    "train.log_every": integer("Updates between lines of metrics."),
}


def check(config: ConfigDict) -> None:
    """Checks a config, and fits its length buckets to `data.max_length`.

    Raises:
      UserError: naming the first bad field, what was expected and what was found.
    """
    values = flatten(config)
    task, dataset = _chosen(values)
    known, unread = declared(config), _unread(config)
    for name in values:
        if name not in known and name not in unread:
            fail(name, "no field of that name", values[name])
    for name, field in known.items():
        if name not in values and not field.accepts(None):
            fail(name, field.expected, "no such field")
    fields.check(known, values)
    if "bucket_lengths" in config.data:
        fit_buckets(config.data)
    # What the model is checked for may be of tasks that it serves.
    task.check(config)
    models.check(config)
    getattr(dataset, "check", lambda config: None)(config.data)
    if not config.train.get("epochs") and not config.train.get("steps"):
        fail("train.steps", "a number without train.epochs", None)
    if config.train.get("schedule") and not config.train.steps:
        expected = f"a number beside train.schedule={config.train.schedule}"
        fail("train.steps", expected, config.train.steps)
    count, rows = config.train.accumulate_steps, max(task.shapes(config))[0]
    if count > rows:
        fail("train.accumulate_steps", f"at most the {rows:,} rows of a batch", count)


def _chosen(values: Mapping):
    """The task and the dataset of flat values, once all names in them are known."""

    def choose(name, known):
        if values.get(name) not in known:
            expected = known_names(str(values.get(name)), known)
            fail(name, f"one of {expected}", values.get(name))
        return values[name]

    task = TASKS[choose("kind", TASKS)]
    datasets = {k: v for k, v in data.DATASETS.items() if task.reads == v.KIND}
    dataset = datasets[choose("data.dataset", datasets)]
    choose("data.tokenizer", dataset.TOKENIZERS)
    variant = models.variant_config(choose("variant", models.variants()))
    choose("model.architecture", [variant["architecture"]])
    return task, dataset


def declared(config: ConfigDict) -> dict[str, Field]:
    """What the fields of a config may hold, by their whole names."""
    task, dataset = TASKS[config.kind], data.DATASETS[config.data.dataset]
    architecture = config.model.architecture
    variant = models.variant_config(config.variant)
    attention = variant.get("attention", {})
    if attention:
        kind = models.attention_kind(variant)
        attention = {
            **{name: fixed(value) for name, value in attention.items()},
            **kind.fields_of(attention),
        }
    return {
        **FIELDS,
        **below("model", models.FIELDS),
        **below("model", models.ARCHITECTURES[architecture].fields),
        **below("model.attention", attention),
        **below("data", DATA_FIELDS),
        **task.fields,
        **below("data", TOKENIZERS[config.data.tokenizer].FIELDS),
        **below("data", dataset.FIELDS),
    }


def _unread(config) -> set[str]:
    """Names of fields that another tokenizer of the dataset would read."""
    names = data.DATASETS[config.data.dataset].TOKENIZERS
    return {f"data.{field}" for name in names for field in TOKENIZERS[name].FIELDS}


def flatten(config) -> dict:
    """{"data.source": "tfds", ...} of a nested config."""
    flat = {}
    for name, value in config.items():
        if isinstance(value, ConfigDict | dict):
            flat.update((f"{name}.{key}", v) for key, v in flatten(value).items())
        else:
            flat[name] = value
    return flat
