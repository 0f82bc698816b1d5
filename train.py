"""Trains a model: train.py --config=configs/TASK.py:VARIANT[,PRESET] --workdir=DIR."""

import json

from training import cli  # first: it quiets TensorFlow's logs

from absl import flags
from ml_collections import config_flags

CONFIG = config_flags.DEFINE_config_file(
    "config",
    None,
    "Task, variant and preset, e.g. configs/listops.py:transevolve-fullff-1,laptop.",
)
WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
STRATEGY = flags.DEFINE_enum(
    "strategy",
    "auto",
    ["auto", "one_device", "mirrored", "multi_worker", "tpu"],
    "Where to run.",
)
TPU = flags.DEFINE_string("tpu", "", 'Name of the TPU; "local" on a TPU VM.')


def main():
    from training.loop import train_and_evaluate
    from training.strategy import make_strategy

    strategy = make_strategy(STRATEGY.value, TPU.value)
    print(json.dumps(train_and_evaluate(CONFIG.value, WORKDIR.value, strategy)))


if __name__ == "__main__":
    flags.mark_flags_as_required(["config", "workdir"])
    cli.run(main)
