"""The identity of a run in its workdir: config and tokenizer, with their checksums."""

import json
import os
import shutil
from pathlib import Path

from ml_collections import ConfigDict

from common import checksums
from common.errors import UserError
from data import tokenizers
from training import metrics_log
from training.config import CHANGEABLE, flatten

CONFIG, TOKENIZER = "config.json", "tokenizer"
UNFINISHED = "unfinished-run"
# What a run writes. Where one is found, and no checksums, it is not of a run of ours.
NAMES = (
    CONFIG,
    TOKENIZER,
    "checkpoints",
    metrics_log.NAME,
    "tensorboard",
    "results",
)


def has_started(workdir: Path) -> bool:
    """Whether the workdir holds a run that has trained, to go on with.

    Raises:
      UserError: if it holds something else, that must not be overwritten.
    """
    _finish_keeping(workdir)
    if (workdir / checksums.NAME).exists():
        return (workdir / metrics_log.NAME).exists()
    for name in NAMES:
        if (workdir / name).exists():
            raise UserError(
                f"--workdir={workdir}: expected an empty folder or a run of this "
                f"version, found {name} of something else or of an older version; give "
                "another workdir"
            )
    return False


def keep(config: ConfigDict, tokenizer, workdir: Path) -> None:
    """Writes the config and the tokenizer, both or neither, with their checksums."""
    unfinished = workdir / UNFINISHED
    unfinished.mkdir()
    (unfinished / CONFIG).write_text(_json(config))
    tokenizers.save(tokenizer, unfinished / TOKENIZER)
    names = [f"{TOKENIZER}/{path.name}" for path in (unfinished / TOKENIZER).iterdir()]
    checksums.write(unfinished, [CONFIG, *names])
    _finish_keeping(workdir)


def _finish_keeping(workdir):
    """Ends or undoes what a kill has left."""
    unfinished = workdir / UNFINISHED
    if (unfinished / checksums.NAME).exists():  # it is whole
        if (unfinished / TOKENIZER).exists():
            shutil.rmtree(workdir / TOKENIZER, ignore_errors=True)
        for name in (TOKENIZER, CONFIG, checksums.NAME):
            if (unfinished / name).exists():
                os.replace(unfinished / name, workdir / name)
    if unfinished.exists():
        shutil.rmtree(unfinished)


def read(workdir: Path) -> tuple[ConfigDict, object]:
    """The config and the tokenizer of the run in a workdir.

    Raises:
      UserError: if there is none, or one of an older version; a `DamagedError` if its
        files are not what was written.
    """
    path = workdir / CONFIG
    if not (workdir / checksums.NAME).exists():
        found = "none"
        if path.exists():
            found = "one of an older version; train it anew"
        raise UserError(
            f"--workdir={workdir}: expected a run of train.py, found {found}"
        )
    checksums.check(workdir)
    config = ConfigDict(json.loads(path.read_text()))
    return config, tokenizers.load(workdir / TOKENIZER)


def differences(config: ConfigDict, kept: ConfigDict) -> list[str]:
    """Names of the fields in which a config and that of a workdir differ."""
    old, new = (flatten(json.loads(_json(part))) for part in (kept, config))
    names = sorted(old.keys() | new.keys())
    return [name for name in names if old.get(name) != new.get(name)]


def check_same_run(config: ConfigDict, kept: ConfigDict, workdir: Path) -> None:
    """Checks that the run in the workdir can go on with this config.

    Raises:
      UserError: if it differs in more than `CHANGEABLE`.
    """
    for name in differences(config, kept):
        if name not in CHANGEABLE:
            old, new = flatten(kept).get(name), flatten(config).get(name)
            raise UserError(
                f"--workdir={workdir}: holds a run with config.{name}={old}, not "
                f"{new}; give another workdir, or the same config to go on with it"
            )


def _json(config):
    config = config.to_dict()
    # So that evaluation finds the data from another folder, too.
    if config["data"].get("dir"):
        config["data"]["dir"] = str(Path(config["data"]["dir"]).expanduser().resolve())
    return json.dumps(config, indent=2) + "\n"
