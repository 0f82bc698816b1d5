"""In which settings runs differ."""

import json
import re
from collections import Counter

from models import variant_config, variants
from reproduction.survey import Run
from training.config import flatten

# Where files lie, and how often a run is logged and saved: no part of what it learns.
NO_PART = {
    "data.dir",
    "data.cache_dir",
    "data.vocab_file",
    "data.on_error",
    "train.log_every",
    "train.checkpoint_every",
    "train.steps_per_loop",
}
NAMES = {"task", "variant", "seed"}
NUMBER = re.compile(r"(\d+(?:\.\d+)?)")
ABSENT = object()


def group(runs: list[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs of one task that differ in their seed alone, put together.

    Returns:
      {(variant, settings): runs}. The settings are those fields, with their values, in
      which runs of the task differ, beside what a variant's name says. The order is
      that of the variants, the paper's first.
    """
    deciding = [_deciding(run) for run in runs]
    names = dict.fromkeys(name for fields in deciding for name in fields)
    differing = [
        name
        for name in names
        if len({_plain(fields.get(name, ABSENT)) for fields in deciding}) > 1
    ]
    short = _shorten(differing)
    groups = {}
    for run, fields in zip(runs, deciding, strict=True):
        settings = ", ".join(
            f"{short[name]} {text(fields[name])}" for name in short if name in fields
        )
        groups.setdefault((run.variant, settings), []).append(run)
    return dict(sorted(groups.items(), key=lambda item: _order(*item[0])))


def common(runs: list[Run]) -> dict:
    """The settings that most runs have, whole names with values."""
    flat = [_settings(run) for run in runs]
    found = {}
    for name in dict.fromkeys(name for fields in flat for name in fields):
        values = [fields.get(name, ABSENT) for fields in flat]
        most, _ = Counter(map(_plain, values)).most_common(1)[0]
        value = next(value for value in values if _plain(value) == most)
        if value is not ABSENT:
            found[name] = value
    return found


def own(run: Run, common: dict) -> dict:
    """The settings of a run that are not in `common`; `ABSENT` ones among them."""
    fields = _settings(run)
    return {
        name: fields.get(name, ABSENT)
        for name in dict.fromkeys([*common, *fields])
        if _plain(fields.get(name, ABSENT)) != _plain(common.get(name, ABSENT))
    }


def profiles(runs: list[Run]) -> str | None:
    """The profiles that the runs followed; see docs/fidelity.md."""
    found = [run.config.get("model.fidelity") for run in runs]
    return ", ".join(sorted({text(one) for one in found if one is not None})) or None


def text(value) -> str:
    """A value of a field, for people."""
    if value is ABSENT:
        return "no such field"
    if isinstance(value, list | tuple):
        return ", ".join(map(text, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _shorten(names):
    """{whole name: its last part, where no other ends alike}."""
    ends = Counter(name.split(".")[-1] for name in names)
    parts = {name: name.split(".")[-1] for name in names}
    return {name: end if ends[end] == 1 else name for name, end in parts.items()}


def _order(variant, settings):
    known = [*variants(in_paper=True), *variants(in_paper=False)]
    rank = known.index(variant) if variant in known else len(known)
    # 100 comes after 50.
    words = re.split(NUMBER, settings)
    words[1::2] = map(float, words[1::2])
    return rank, variant, words


def _settings(run):
    return {name: value for name, value in run.config.items() if name not in NAMES}


def _deciding(run):
    """Fields that may tell a run's results from those of another of its variant."""
    try:
        variant = flatten({"model": variant_config(run.variant)})
    except KeyError:  # of another version
        variant = {}
    return {
        name: value
        for name, value in _settings(run).items()
        if name not in NO_PART and _plain(variant.get(name, ABSENT)) != _plain(value)
    }


def _plain(value):
    return None if value is ABSENT else json.dumps(value)
