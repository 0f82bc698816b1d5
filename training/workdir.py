"""The identity of a run in its workdir: config, tokenizer and data, with checksums."""

import json
from pathlib import Path

from ml_collections import ConfigDict

import models
from common import checksums
from common.errors import UserError
from common.paths import full_name, make_path, move, remove_folder
from data import tokenizers
from data.batches import Batches
from training import metrics_log
from training.config import declared, flatten

CONFIG, TOKENIZER, DATA = "config.json", "tokenizer", "data.json"
UNFINISHED = "unfinished-run"
# What a run writes. Where one is found, and no checksums of a config and its data, it
# is not of a run of ours.
NAMES = (
    checksums.NAME,
    CONFIG,
    TOKENIZER,
    DATA,
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
    has_sums = (workdir / checksums.NAME).exists()
    if has_sums and {CONFIG, DATA} <= checksums.read(workdir).keys():
        # A checkpoint of step 0 is no training: it is written before the log.
        trained = (workdir / "checkpoints").glob("*/[1-9]*")
        return (workdir / metrics_log.NAME).exists() or any(trained)
    for name in NAMES:
        if (workdir / name).exists():
            raise UserError(
                f"--workdir={workdir}: expected an empty folder or a run of this "
                f"version, found {name} of something else or of an older version; give "
                "another workdir"
            )
    return False


def keep(config: ConfigDict, tokenizer, data, workdir: Path) -> None:
    """Writes them to the workdir, all or none, with their checksums.

    Args:
      config: of the run.
      tokenizer: of its task.
      data: {split: fingerprint} of its batches.
    """
    unfinished = workdir / UNFINISHED
    unfinished.mkdir()
    (unfinished / CONFIG).write_text(_json(config))
    (unfinished / DATA).write_text(json.dumps(data, indent=2) + "\n")
    tokenizers.save(tokenizer, unfinished / TOKENIZER)
    names = [f"{TOKENIZER}/{path.name}" for path in (unfinished / TOKENIZER).iterdir()]
    checksums.write(unfinished, [CONFIG, DATA, *names])
    _finish_keeping(workdir)


def _finish_keeping(workdir):
    """Ends or undoes what a kill has left."""
    unfinished = workdir / UNFINISHED
    if unfinished.exists():
        for path in unfinished.iterdir():
            if not path.name.startswith((TOKENIZER, CONFIG, DATA, checksums.NAME)):
                raise UserError(
                    f"--workdir={workdir}: expected an empty folder or a run, found "
                    f"{path} of something else; give another workdir"
                )
    if (unfinished / checksums.NAME).exists():  # it is whole
        for name in (TOKENIZER, CONFIG, DATA, checksums.NAME):
            if (unfinished / name).exists():
                move(unfinished / name, workdir / name)
    remove_folder(unfinished)


def read(workdir: Path) -> tuple[ConfigDict, object]:
    """The config and the tokenizer of the run in a workdir.

    Raises:
      UserError: if there is none, or one of an older version; a `DamagedError` if its
        files are not what was written.
    """
    return read_config(workdir), tokenizers.load(workdir / TOKENIZER)


def read_config(workdir: Path) -> ConfigDict:
    """The config alone; raises as `read`."""
    path = workdir / CONFIG
    if not (workdir / checksums.NAME).exists():
        older = "one of an older version; train it anew"
        raise UserError(
            f"--workdir={workdir}: expected a run of train.py, found "
            + (older if path.exists() else "none")
        )
    checksums.check(workdir)
    return ConfigDict(json.loads(path.read_text()))


def read_data(workdir: Path) -> dict:
    """{split: fingerprint} of the data that the run in the workdir began with."""
    return json.loads((workdir / DATA).read_text())


def check_same_data(batches: dict[str, Batches], workdir: Path, otherwise: str) -> None:
    """Checks that the data is what the run in the workdir began with.

    Args:
      batches: by split, named as in `read_data`.
      otherwise: what to do where it is not, for the error.

    Raises:
      UserError: if it is not.
    """
    stored = read_data(workdir)
    for split, split_batches in batches.items():
        if not split_batches.has_fingerprint(stored[split]):
            raise UserError(
                f"--workdir={workdir}: holds a run that began with other {split} data; "
                f"{otherwise}"
            )


def differences(config: ConfigDict, stored: ConfigDict) -> list[str]:
    """Names of the fields in which a config and that of a workdir differ.

    One that there was not yet when the run began has the value of its variant.
    """
    old, new = (flatten(json.loads(_json(part))) for part in (stored, config))
    names = sorted(old.keys() | new.keys())
    usual = flatten({"model": models.variant_config(config.variant)})
    return [name for name in names if old.get(name, usual.get(name)) != new.get(name)]


def check_same_run(config: ConfigDict, stored: ConfigDict, workdir: Path) -> None:
    """Checks that the run in the workdir can go on with this config.

    Raises:
      UserError: if it differs in a field that is not `changeable`, or in the content
        of its vocabulary.
    """
    fields = declared(config)
    for name in differences(config, stored):
        if name not in fields or not fields[name].changeable:
            old, new = flatten(stored).get(name), flatten(config).get(name)
            raise UserError(
                f"--workdir={workdir}: holds a run with config.{name}={old}, not "
                f"{new}; give another workdir, or the same config to go on with it"
            )
    _check_same_vocabulary(config, stored, workdir)


def _check_same_vocabulary(config, stored, workdir):
    # A run goes on with its stored tokenizer, whatever the file says. The two are
    # compared without TensorFlow, which would take the accelerators from a child.
    tokenizer = tokenizers.TOKENIZERS[config.data.tokenizer]
    file, old = (part.data.get("vocab_file") for part in (config, stored))
    if "vocab_file" not in tokenizer.FIELDS or file is old is None:
        return
    if not tokenizer.is_saved(config.data, workdir / TOKENIZER):
        raise UserError(
            f"--workdir={workdir}: holds a run with another vocabulary than "
            f"config.data.vocab_file={file}; give another workdir, or a file with the "
            "same content to go on with it"
        )


def _json(config):
    config = config.to_dict()
    # So that another folder is as good to start from.
    for name in ("dir", "vocab_file"):
        if path := config["data"].get(name):
            config["data"][name] = full_name(make_path(path, f"--config.data.{name}"))
    return json.dumps(config, indent=2) + "\n"
