"""Speed and memory of the models, measured once for all tables."""

import json
import logging
import time
from pathlib import Path

from benchmarks import memory, speed
from benchmarks.models import BASELINE
from reproduction.facts import facts
from reproduction.running import (
    LOCKED,
    SECONDS_BETWEEN_LOOKS,
    in_own_process,
    write_json,
)
from reproduction.scales import Scale
from training import cli
from training.lock import LockedError, locked
from training.strategy import describe, make_strategy

SPEED, MEMORY = "speed", "memory"

logger = logging.getLogger("transevolve")


def measure(scale: Scale, folder: Path, what: list[str]) -> list[str]:
    """Measures what has not been measured, into a file of its name in the folder.

    Another process that measures is waited for: side by side both would be slow.

    Args:
      scale: whose models and lengths.
      folder: of the results.
      what: of `SPEED` and `MEMORY`.

    Returns:
      Those that failed.

    Raises:
      Interrupted: after a signal.
    """
    failed = []
    for name in what:
        code = None
        while not _is_measured(scale, folder, name):
            if code != LOCKED:
                logger.info("\nmeasuring %s", name)
            code = in_own_process(_measure, name, scale, folder)
            if code not in (0, LOCKED):
                logger.info("failed: %s ended with code %d", name, code)
                failed.append(name)
                break
            if code == LOCKED:
                time.sleep(SECONDS_BETWEEN_LOOKS)
        if code is None:
            logger.info("measured before: %s", _path(folder, name))
    return failed


def device(folder: Path, name: str) -> str | None:
    """Where it was measured, as "1 CPU of ..., 2 cores"; None if it was not."""
    found = _read(folder, name)
    known = [found[key] for key in ("device", "machine") if key in found]
    return " of ".join(known) or None


def rows(folder: Path, name: str) -> list[dict]:
    """What was measured, none if nothing was."""
    return _read(folder, name).get("rows", [])


def _models(scale):
    # The others are compared with it.
    return list(dict.fromkeys([*scale.variants, *scale.systems, BASELINE]))


def _measured(folder, name):
    """The models that were measured."""
    return _read(folder, name).get("models", [])


def _is_measured(scale, folder, name):
    return set(_models(scale)) <= set(_measured(folder, name))


def _measure(name, scale, folder):
    cli.log_to_stderr()
    try:
        with locked(folder, "measuring.lock"):
            if _is_measured(scale, folder, name):  # by another process, just now
                return 0
            # Those of before again: ratios are of one run.
            models = list(dict.fromkeys([*_measured(folder, name), *_models(scale)]))
            if name == SPEED:
                found = list(speed.measure(models, **scale.timing))
            else:
                timing = dict(scale.timing, lengths=scale.memory_lengths)
                timing.pop("rounds")
                found = list(memory.measure(models, **timing))
            where = describe(make_strategy("one_device"))
            content = {"models": models, "device": where, **facts(), "rows": found}
            write_json(_path(folder, name), content)
    except LockedError as error:
        logger.info("put off: %s", error)
        return LOCKED
    return 0


def _path(folder, name):
    return folder / f"{name}_benchmark.json"


def _read(folder, name):
    path = _path(folder, name)
    return json.loads(path.read_text()) if path.exists() else {}
