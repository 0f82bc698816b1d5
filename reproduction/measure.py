"""Speed and memory of the models, measured once for all tables."""

import functools
import logging
import time
from pathlib import Path

from benchmarks import memory, speed
from benchmarks.models import BASELINE
from common.errors import UserError
from common.json_files import read_object
from models import variants
from reproduction.facts import facts
from reproduction.running import (
    LOCKED,
    SECONDS_BETWEEN_LOOKS,
    in_own_process,
    write_json,
)
from reproduction.scales import Scale
from training import cli
from training.cluster.lock import LockedError, locked
from training.tensorflow.strategy import describe, make_strategy

SPEED, MEMORY = "speed", "memory"
# What tables read of a row.
TEXTS = ("benchmark", "model")
NUMBERS = ("length", "batch", "seconds", "ratio_to_transformer", "peak_memory_mb")

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
    content = _read(folder, name)
    known = [str(content[key]) for key in ("device", "machine") if key in content]
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
            before = [one for one in _measured(folder, name) if one in variants()]
            models = list(dict.fromkeys([*before, *_models(scale)]))
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
    """What was measured; of a damaged file nothing, so that it is measured again."""
    path = _path(folder, name)
    try:
        content = read_object(path) or {}
        models, rows = content.get("models", []), content.get("rows", [])
        if not _are(models, _is_text) or not _are(rows, _is_row):
            raise UserError(f"{path}: expected rows of a benchmark, found others")
    except UserError as error:
        _warn(f"left out: {error}")
        return {}
    return content


@functools.cache  # once, however often the file is read
def _warn(message):
    logger.warning(message)


def _are(values, kind):
    return isinstance(values, list) and all(map(kind, values))


def _is_text(value):
    return isinstance(value, str)


def _is_row(row):
    if not isinstance(row, dict) or not _are([*map(row.get, TEXTS)], _is_text):
        return False
    has_length = "length" in row or row["benchmark"].endswith("_fit")
    numbers = [row[name] for name in NUMBERS if name in row]
    return has_length and all(type(one) in (int, float) for one in numbers)
