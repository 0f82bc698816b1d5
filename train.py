"""Trains a model: train.py --config=configs/TASK.py:VARIANT[,PRESET] --workdir=DIR."""

import json

from common import cli  # first: it quiets TensorFlow's logs

from absl import flags
from ml_collections import config_flags

CONFIG = config_flags.DEFINE_config_file(
    "config",
    None,
    "Task, variant and preset, e.g. configs/listops.py:transevolve-fullff-1,laptop.",
)
WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
PROFILE = flags.DEFINE_string(
    "profile", None, "FIRST:LAST: these steps are profiled, for TensorBoard."
)
strategy_arguments = cli.define_strategy(
    "auto", "one_device", "mirrored", "multi_worker", "tpu"
)


def main():
    from training.tensorflow.strategy import make_strategy
    from training.train import train_and_evaluate

    strategy = make_strategy(*strategy_arguments())
    result = train_and_evaluate(
        CONFIG.value, WORKDIR.value, strategy, profile=PROFILE.value
    )
    print(json.dumps(result))


if __name__ == "__main__":
    flags.mark_flags_as_required(["config", "workdir"])
    cli.run(main)
