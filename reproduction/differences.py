"""In which settings runs differ."""

import re
from collections import Counter

from models import ARCHITECTURES, FIELDS, variant_config, variants
from reproduction.records import Record
from training.config import flatten

# Where files lie, and how often a run is logged and saved: no part of what it learns.
IMMATERIAL = {
    "data.dir",
    "data.cache_dir",
    "data.vocab_file",
    "data.on_error",
    "train.log_every",
    "train.checkpoint_every",
    "train.steps_per_loop",
}
# What a record tells by itself.
NAMES = {"task", "variant", "seed"}
NUMBER = re.compile(r"(\d+(?:\.\d+)?)")
ABSENT = "no such field"
# Not all models have all of these; one that no flag has set says nothing.
CHOICES = {
    f"model.{name}"
    for architecture in ARCHITECTURES.values()
    for name in (*FIELDS, *architecture.fields)
}


def group(records: list[Record]) -> dict[tuple[str, str], list[Record]]:
    """Runs of one task that differ in their seed alone, put together.

    Returns:
      {(variant, settings): records}. The settings are those fields, with their values,
      in which runs of the task differ, beside what a variant's name says. The order is
      that of the variants, the paper's first.
    """
    deciding = [_deciding(record) for record in records]
    names = dict.fromkeys(name for fields in deciding for name in fields)
    names = [name for name in names if len({one.get(name) for one in deciding}) > 1]
    # The last part of a name is enough where no other ends alike.
    ends = Counter(name.split(".")[-1] for name in names)
    short = {name: name.split(".")[-1] for name in names}
    short = {name: end if ends[end] == 1 else name for name, end in short.items()}
    groups = {}
    for record, fields in zip(records, deciding, strict=True):
        words = [f"{short[name]} {fields[name]}" for name in names if name in fields]
        groups.setdefault((record.variant, ", ".join(words)), []).append(record)
    return dict(sorted(groups.items(), key=lambda item: _order(*item[0])))


def usual_settings(records: list[Record]) -> dict[str, str]:
    """The settings that most runs have, whole names with values in words."""
    each = [settings(record) for record in records]
    usual = {}
    for name in dict.fromkeys(name for fields in each for name in fields):
        ((value, _),) = Counter(one.get(name, ABSENT) for one in each).most_common(1)
        usual[name] = value
    return {name: value for name, value in usual.items() if value != ABSENT}


def unusual_settings(record: Record, usual: dict[str, str]) -> dict[str, str]:
    """The settings of a run that are not the usual ones; `ABSENT` ones among them."""
    fields = settings(record)
    names = dict.fromkeys([*usual, *fields])
    values = {name: fields.get(name, ABSENT) for name in names}
    return {name: value for name, value in values.items() if value != usual.get(name)}


def settings(record: Record) -> dict[str, str]:
    """{whole name of a field: its value in words}."""
    flat = flatten(record.config)
    words = {name: in_words(flat[name]) for name in flat if name not in NAMES}
    if start := words.get("train.init_from"):
        # What each starts from may be of its variant and its seed.
        end = f"/{record.variant}/seed-{record.seed}"
        words["train.init_from"] = start.removesuffix(end)
    return words


def fidelities(records: list[Record]) -> str | None:
    """Those of the runs; see docs/fidelity.md."""
    models = [record.config.get("model", {}) for record in records]
    names = {in_words(model["fidelity"]) for model in models if "fidelity" in model}
    return ", ".join(sorted(names)) or None


def in_words(value) -> str:
    """A value of a field, for people."""
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _order(variant, words):
    known = [*variants(in_paper=True), *variants(in_paper=False)]
    rank = known.index(variant) if variant in known else len(known)
    # 100 comes after 50.
    parts = re.split(NUMBER, words)
    parts[1::2] = map(float, parts[1::2])
    return rank, variant, parts


def _deciding(record):
    """Fields that may tell a run's results from those of another of its variant."""
    try:
        variant = flatten({"model": variant_config(record.variant)})
    except KeyError:  # of another version
        variant = {}
    fields = {name: in_words(value) for name, value in variant.items()}
    flat = flatten(record.config)
    unset = {name for name in CHOICES if flat.get(name) is None}
    return {
        name: value
        for name, value in settings(record).items()
        if name not in IMMATERIAL | unset and value != fields.get(name)
    }
