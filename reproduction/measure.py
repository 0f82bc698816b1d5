"""Speed and memory of the models, measured once for all tables."""

import json
import logging
from pathlib import Path

from benchmarks import memory, speed
from benchmarks.models import BASELINE
from reproduction.facts import facts
from reproduction.running import in_own_process, write_json
from reproduction.scales import Scale
from training import cli
from training.lock import LockedError, locked

SPEED, MEMORY = "speed", "memory"

logger = logging.getLogger("transevolve")


def measure(scale: Scale, folder: Path, what: list[str]) -> None:
    """Measures what has not been measured, into `speed.json` and `memory.json`.

    Args:
      scale: whose models and lengths.
      folder: of the results.
      what: of `SPEED` and `MEMORY`.

    Raises:
      Interrupted: after a signal.
    """
    for name in what:
        if _read(folder, name).get("models") == _models(scale):
            logger.info("measured before: %s", _path(folder, name))
            continue
        logger.info("\nmeasuring %s", name)
        code = in_own_process(_measure, name, scale, folder)
        if code != 0:
            logger.info("failed: %s ended with code %d", name, code)


def rows(folder: Path, name: str) -> list[dict]:
    """What was measured, none if nothing was."""
    return _read(folder, name).get("rows", [])


def _models(scale):
    # The others are compared with it.
    return list(dict.fromkeys([*scale.variants, *scale.systems, BASELINE]))


def _measure(name, scale, folder):
    cli.log_to_stderr()
    models = _models(scale)
    try:
        with locked(folder, f"{name}.lock"):
            if name == SPEED:
                found = list(speed.measure(models, **scale.timing))
            else:
                timing = dict(scale.timing, lengths=scale.memory_lengths)
                timing.pop("rounds")
                found = list(memory.measure(models, **timing))
            content = {"models": models, **facts(), "rows": found}
            write_json(_path(folder, name), content)
    except LockedError as error:
        logger.info("put off: %s", error)


def _path(folder, name):
    return folder / f"{name}_benchmark.json"


def _read(folder, name):
    path = _path(folder, name)
    return json.loads(path.read_text()) if path.exists() else {}
