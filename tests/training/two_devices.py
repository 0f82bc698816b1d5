"""Trains one model on one and on two logical CPU devices; run by test_scripts.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import tensorflow as tf  # noqa: E402

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)

from configs.listops import get_config  # noqa: E402
from models import build_classifier  # noqa: E402
from tests.test_scripts import FLAGS  # noqa: E402
from training.loop import train_and_evaluate  # noqa: E402
from training.strategy import make_strategy, separate_dropout  # noqa: E402

workdir, cache = map(Path, sys.argv[1:])
for name, replicas in (("one_device", 1), ("mirrored", 2)):
    config = get_config("transevolve-fullff-1")
    config.update_from_flattened_dict(
        {
            **FLAGS,
            "data.bucket_lengths": (16, 24),
            "data.cache_dir": str(cache),
            # Replicas draw dropout masks of their own: no curve would be the same.
            "model.dropout": 0.0,
        }
    )
    strategy = make_strategy(name)
    assert strategy.num_replicas_in_sync == replicas
    train_and_evaluate(config, workdir / name, strategy)

with strategy.scope():
    model = build_classifier({**config.model, "dropout": 0.5}, 16, 10)
separate_dropout(model, strategy)
tokens = tf.ones([4, 8], tf.int32)


@tf.function
def logits():
    return strategy.run(lambda: model(tokens, training=True))


for _ in range(2):
    first, second = (value.numpy() for value in logits().values)
    different = abs(first - second).max() > 1e-3
    print("replicas drop different features:", different)
    assert different
