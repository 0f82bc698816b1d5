"""Digests of seven short trainings: python tests/digests.py [NAME ...].

Prints the name of each, and the digests of its `metrics.jsonl` and final weights. A
change that is meant to leave results alone leaves every line as it is, on one machine;
processors differ in rounding, so no digest is kept in the repository. Two runs need the
sample data beside the checkout.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"

SMALL = {"model.hidden_dim": 64, "model.ffn_dim": 128, "model.num_heads": 4}
LISTOPS = {
    **SMALL,
    "data.min_length": 5,
    "data.max_length": 40,
    "data.bucket_lengths": (24, 40),
    "data.max_depth": 4,
    "data.max_arguments": 5,
    "data.train_examples": 600,
    "data.validation_examples": 200,
    "data.test_examples": 10,
    "train.batch_size": 32,
    "train.epochs": 1,
    "train.warmup_steps": 20,
    "train.log_every": 5,
}
AG_NEWS = {
    **SMALL,
    "data.source": "files",
    "data.dir": str(SHARED / "ag_news_csv"),
    "data.vocab_file": str(SHARED / "bert_base_uncased_vocab.txt"),
    "data.validation_examples": 6000,
    "data.max_length": 64,
    "data.bucket_lengths": (32, 64),
    "train.batch_size": 16,
    "train.epochs": 1,
    "train.warmup_steps": 20,
    "train.log_every": 5,
}
MULTI30K = {
    **SMALL,
    "data.dir": str(SHARED / "multi30k"),
    "data.vocab_size": 1000,
    "data.max_length": 32,
    "data.bucket_lengths": (16, 32),
    "data.shuffle_window": 5000,
    "train.steps": 30,
    "train.validate_every": 15,
    "train.log_every": 5,
    "train.warmup_steps": 20,
}
# Name: config file, variant, what it changes, devices.
RUNS = {
    "listops-factored": ("listops", "transevolve-fullff-1", LISTOPS, 1),
    "listops-literal": ("listops", "transevolve-fullff-1-literal", LISTOPS, 1),
    "listops-official": (
        "listops",
        "transevolve-fullff-1",
        {**LISTOPS, "model.fidelity": "official"},
        1,
    ),
    "ag-news-randomff-2": ("ag_news", "transevolve-randomff-2", AG_NEWS, 1),
    "multi30k-fullff-2": ("multi30k", "transevolve-fullff-2", MULTI30K, 1),
    "multi30k-transformer": ("multi30k", "transformer", MULTI30K, 1),
    "listops-two-devices": ("listops", "transevolve-fullff-1", LISTOPS, 2),
}


def main(names):
    with tempfile.TemporaryDirectory() as folder:
        for name in names or RUNS:
            # A process each: the number of devices is fixed at its first use.
            command = [sys.executable, __file__, "--run", name, folder]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            print(done.stdout, end="", flush=True)


def run(name, folder):
    sys.path[0] = str(ROOT)  # not tests/, whose folders have the same names
    import importlib

    import tensorflow as tf

    # It sorts the terms of a sum by the names of operations: a renamed one would round
    # otherwise.
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
    task, variant, changes, num_devices = RUNS[name]
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * num_devices,
    )
    from training.tensorflow.strategy import make_strategy
    from training.train import train_and_evaluate

    config = importlib.import_module(f"configs.{task}").get_config(variant)
    cache = {"data.cache_dir": str(folder / "cache")}
    config.update_from_flattened_dict({**changes, **cache})
    strategy = make_strategy("mirrored" if num_devices > 1 else "one_device")
    workdir = folder / name
    train_and_evaluate(config, workdir, strategy)
    print(f"{name:22} metrics {digest_metrics(workdir)} weights {digest(workdir)}")


def digest_metrics(workdir):
    return hashlib.sha256((workdir / "metrics.jsonl").read_bytes()).hexdigest()[:16]


def digest(workdir):
    """Of the set of the model's weights in the last checkpoint, without their names."""
    import tensorflow as tf

    # Steps of one number of digits: the last by name is the newest.
    *_, newest = sorted((workdir / "checkpoints/last").iterdir())
    reader = tf.train.load_checkpoint(str(newest / "weights"))
    weights = [
        reader.get_tensor(key)
        for key in reader.get_variable_to_shape_map()
        if key.startswith("model/") and not key.startswith("model/seeds")
    ]
    digests = sorted(hashlib.sha256(weight.tobytes()).hexdigest() for weight in weights)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1:])
