"""Where training runs: one device, several, several workers, or a TPU."""

import os

import tensorflow as tf

from common.errors import UserError
from training.tensorflow import workers


def make_strategy(name: str = "auto", tpu: str = "") -> tf.distribute.Strategy:
    """Makes the strategy of that name.

    Args:
      name: "auto" takes a named TPU, else all GPUs, else the CPU. "mirrored" uses all
        GPUs, or all logical CPU devices where there is no GPU. "multi_worker" uses the
        workers that the environment variable TF_CONFIG lists.
      tpu: name or address of the TPU, for "tpu" and "auto"; "local" on a TPU VM.

    Raises:
      UserError: if there is no such TPU, or the workers cannot be had.
    """
    # Before anything asks for devices: that would fix what there is.
    if name == "tpu" or (name == "auto" and tpu):
        return _tpu(tpu)
    if name == "multi_worker":
        return workers.connect()
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.OneDeviceStrategy(devices[0].name)


def _tpu(name):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(name)
        num_hosts = resolver.get_tpu_system_metadata().num_hosts
        strategy = tf.distribute.TPUStrategy(resolver)
    except Exception as error:  # TensorFlow's, its transport's, the cloud's
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"--tpu={name}: expected a TPU of that name, or local on a TPU VM, found "
            f"{type(error).__name__}: {reason}"
        ) from error
    if num_hosts > 1:
        raise UserError(
            f"--tpu={name}: expected a TPU of one host, such as v3-8 or v4-8, found "
            f"{num_hosts} hosts, to which input that Python reads cannot be dealt out"
        )
    return strategy


def is_tpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether a strategy runs on a TPU."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def distribute(dataset: tf.data.Dataset, strategy: tf.distribute.Strategy):
    """Deals out batches, an iterable: each replica gets its part of each.

    On one CPU that is the dataset as it is. The iterator of a strategy would bring a
    tuner (`data.batches.untuned`), and copies that only an accelerator needs.
    """
    if strategy.num_replicas_in_sync == 1 and _kind(strategy) == "CPU":
        return dataset
    return strategy.experimental_distribute_dataset(dataset)


def describe(strategy: tf.distribute.Strategy) -> str:
    """The devices of a strategy in a few words."""
    count = strategy.num_replicas_in_sync
    text = f"{count} {_kind(strategy)}" + "s" * (count > 1)
    number, total = workers.place(strategy)
    return text + f", worker {number + 1} of {total}" * (total > 1)


def _kind(strategy):
    device = strategy.extended.worker_devices[0]
    return tf.DeviceSpec.from_string(device).device_type


def warn_of_idle_gpu() -> str | None:
    """What to say where a GPU is there, and TensorFlow does not see it; else None."""
    if os.path.exists("/proc/driver/nvidia/version") and not (
        tf.config.list_physical_devices("GPU")
    ):
        return (
            "warning: this machine has a GPU that the installed TensorFlow cannot "
            "use; everything runs on the CPU. pip install -r requirements-gpu.txt"
        )
    return None


def separate_dropout(model, strategy: tf.distribute.Strategy) -> None:
    """Gives each replica of each worker dropout masks of its own.

    Keras seeds all replicas alike. Only generators of Keras's own name are told apart:
    one that replicas are to share has a name of its own. To be called once the model
    has its weights, and again whenever they are restored, as that copies the first
    replica's seeds.
    """
    if strategy.num_replicas_in_sync == 1:
        return
    worker, _ = workers.place(strategy)
    for variable in model.variables:
        if variable.name == "seed_generator_state":
            values = variable.value.values
            seed, count = values[0].numpy()
            for replica, copy in enumerate(values, start=worker * len(values)):
                copy.assign([seed + 1_000_003 * replica, count])
