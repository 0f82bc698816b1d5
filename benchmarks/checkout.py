"""Models of another checkout of this repository, in processes of their own.

So two commits are compared in the same rounds.
"""

import os
import sys
from pathlib import Path

from benchmarks import alone
from common.errors import UserError

PROCESS = Path(__file__).with_name("peer_process.py")


def split(name: str) -> tuple[str, str]:
    """The folder and the model of CHECKOUT:MODEL; no folder for a model from here."""
    folder, _, model = name.rpartition(":")
    return folder, model


def models(names: list[str]) -> list[str]:
    """Those of the names that are CHECKOUT:MODEL.

    Raises:
      UserError: if one names no checkout.
    """
    found = [name for name in names if split(name)[0]]
    for name in found:
        folder, _ = split(name)
        if not (Path(folder) / "benchmarks" / "calls.py").is_file():
            raise UserError(
                f"--models: {name}: expected a checkout of this repository at {folder}"
            )
    return found


def start(
    folder: str, model: str, setting: dict, batch_size: int, length: int
) -> alone.Peer:
    """Starts a process with a model and a batch, by the code of another checkout.

    Args:
      setting: fields of `calls.Setting`, which that checkout must know.
      batch_size, length: of the batch.

    Raises:
      UserError: if that checkout cannot make it.
      ProcessEnded: if the process ends, here or in a call.
    """
    # Python leaves out this folder, so that all modules are that checkout's.
    return alone.start(
        f"{folder}:{model} at {length} tokens",
        [sys.executable, "-P", str(PROCESS)],
        [model, setting, batch_size, length],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(folder).resolve())},
    )
