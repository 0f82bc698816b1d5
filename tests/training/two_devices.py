"""Trains a model on one and on two logical CPU devices; tests run it as a script.

On two, each takes its rows in two parts.

two_devices.py TASK WORKDIR FOLDER, the folder of a cache or of parallel text.
"""

import operator
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path[0] = str(Path(__file__).resolve().parents[2])

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)

from evaluation.evaluate import evaluate  # noqa: E402
from models import build_classifier, variant_config  # noqa: E402
from tests import scripts, toys, translation  # noqa: E402
from training.run_state import CARRIED  # noqa: E402
from training.tensorflow.strategy import make_strategy, separate_dropout  # noqa: E402
from training.train import train_and_evaluate  # noqa: E402

task, workdir, folder = sys.argv[1], *map(Path, sys.argv[2:])


def make_config():
    # Replicas draw dropout masks of their own: no curve would be the same.
    changes = {"model.dropout": 0.0}
    if task == "listops":
        return scripts.listops_config(folder, "transevolve-fullff-1", **changes)
    changes |= {
        # ListOps has two.
        "data.bucket_lengths": (24,),
        # 8 rows.
        "train.batch_unit": "tokens",
        "train.batch_size": 192,
        "train.steps": 20,
        "train.validate_every": 10,
        "train.log_every": 5,
    }
    return translation.config(folder, "transformer", **changes)


evaluations = []
for name, replicas, parts in (("one_device", 1, 1), ("mirrored", 2, 2)):
    strategy = make_strategy(name)
    assert strategy.num_replicas_in_sync == replicas
    config = make_config()
    config.train.accumulate_steps = parts
    config.train.clip_norm = 0.5
    # Adam divides by the gradient's size: with a small epsilon it makes full steps of
    # gradients that are rounding alone, and these differ by processor.
    config.train.adam_epsilon = 1e-4
    train_and_evaluate(config, workdir / name, strategy)
    evaluations.append(evaluate(workdir / "one_device", strategy=strategy))

(one, answers), (two, same_answers) = evaluations
assert answers.answers == same_answers.answers
assert one["examples"] == two["examples"]
assert abs(one.get("loss", 0) - two.get("loss", 0)) < 1e-6

if task != "listops":
    sys.exit()
config = make_config()
tokens = tf.ones([4, 8], tf.int32)


def outputs(**changes):
    """Logits of each replica for the same tokens in training, in each of two steps."""
    with strategy.scope():
        model = build_classifier({**config.model.to_dict(), **changes}, 16, 10)
    separate_dropout(model, strategy)

    @tf.function
    def logits():
        return strategy.run(lambda: model(tokens, training=True))

    return [[value.numpy() for value in logits().values] for _ in range(2)]


for first, second in outputs(dropout=0.5):
    different = abs(first - second).max() > 1e-3
    print("replicas drop different features:", different)
    assert different
attention = variant_config("transevolve-fullff-1-linear-favor")["attention"]
(first, second), (redrawn, same) = outputs(attention={**attention, "redraw_every": 1})
assert (first == second).all() and (redrawn == same).all()
different = abs(first - redrawn).max() > 1e-3
print("replicas share the random features, which are redrawn:", different)
assert different

# A state is carried by each device for its rows, and kept for those of all.
toys.register(SimpleNamespace(setitem=operator.setitem))
one_device = make_strategy("one_device")
for name, steps in (("one_device", 9), ("mirrored", 5), ("mirrored", 9)):
    changes = {"train.epochs": None, "train.steps": steps, "train.log_every": 1}
    changes["train.validate_every"] = 5
    config = toys.counting_config("next_byte_of_segment", **changes)
    config.train.accumulate_steps = 1 if name == "one_device" else 2
    where = one_device if name == "one_device" else strategy
    train_and_evaluate(config, workdir / f"segments_{name}", where)
runs = [workdir / f"segments_{name}" for name in ("one_device", "mirrored")]
for one, two in zip(*map(scripts.metrics, runs), strict=True):
    assert (one["step"], one["split"]) == (two["step"], two["split"])
    assert abs(one["loss"] - two["loss"]) < 1e-4
one, two = (np.load(run / "checkpoints/last/9" / CARRIED)["arr_0"] for run in runs)
assert one.sum() and (one == two).all()
