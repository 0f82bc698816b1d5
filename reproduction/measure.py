"""Speed and memory of the models, measured once for all tables."""

import functools
from pathlib import Path

from benchmarks import memory, speed
from models import BASELINE, variants
from reproduction.facts import facts
from reproduction.running import Job, measured, write_json
from reproduction.scales import Scale
from training.backends import describe
from training.lock import locked
from training.tensorflow.strategy import make_strategy

SPEED, MEMORY = "speed", "memory"
BENCHMARKS = {SPEED: speed, MEMORY: memory}


def jobs(scale: Scale, folder: Path) -> list[Job]:
    """Jobs that measure `SPEED` and `MEMORY`, each into a file of results.

    Another process that measures is waited for: side by side both would be slow.

    Args:
      scale: whose models and lengths.
      folder: of the results.
    """
    return [
        Job(
            name,
            functools.partial(_is_measured, scale, folder, name),
            (_measure, name, scale, folder),
        )
        for name in BENCHMARKS
    ]


def device(folder: Path, name: str) -> str | None:
    """Where it was measured, as "1 CPU of ..., 2 cores"; None if it was not."""
    content = _read(folder, name)
    known = [str(content[key]) for key in ("device", "machine") if key in content]
    return " of ".join(known) or None


def rows(folder: Path, name: str) -> list[dict]:
    """What was measured, none if nothing was."""
    return _read(folder, name).get("rows", [])


def _models(scale):
    # The others are compared with the baseline.
    return list(dict.fromkeys([*scale.variants, *scale.systems, BASELINE]))


def _is_measured(scale, folder, name):
    return set(_models(scale)) <= set(_read(folder, name).get("models", []))


def _measure(name, scale, folder):
    with locked(folder, "measuring.lock"):
        if _is_measured(scale, folder, name):  # by another process, just now
            return
        # Those of before again: ratios are of one run.
        before = _read(folder, name).get("models", [])
        before = [model for model in before if model in variants()]
        models = list(dict.fromkeys([*before, *_models(scale)]))
        rows = list(BENCHMARKS[name].measure(models, **scale.benchmarks[name]))
        content = {"models": models, "rows": rows}
        content |= {"device": describe(make_strategy("one_device")), **facts()}
        write_json(_path(folder, name), content)


def _path(folder, name):
    return folder / f"{name}_benchmark.json"


def _read(folder, name):
    return measured(_path(folder, name))
